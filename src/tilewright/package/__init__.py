"""The `.ipuexe` package: what it holds, how it is stored, and every rule it must keep."""
