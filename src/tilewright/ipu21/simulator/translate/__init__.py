"""The fast engine: worker code translated to native code, equal to the compiled engine in every respect."""
