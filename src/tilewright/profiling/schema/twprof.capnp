# The file form of a cycle profile (see ../records.py for what the fields mean), version 1.
# An incompatible change gets a new file id, so that no reader mistakes one form for another.
#
# One unpacked message per file. The intervals of all runs, one after another, are stored by column: each
# column is one packed little-endian array.

@0xd1a46e27c05b93f8;

struct Profile {
  version       @0  :UInt32;
  format        @1  :Text;                 # "tilewright cycle profile"
  packageDigest @2  :Data;                 # SHA-256 of the package's meaning
  packageName   @3  :Text;
  compiler      @4  :Text;
  device        @5  :Text;
  clockHz       @6  :UInt64;
  exact         @7  :Bool;
  steps         @8  :List(Step);
  runs          @9  :List(Run);
  barriers      @10 :Data;                 # BARRIER rows
  tile          @11 :Column;               # u16, physical id
  context       @12 :Column;               # u8
  kind          @13 :Column;               # u8
  step          @14 :Column;               # u16
  instance      @15 :Column;               # u32
  begin         @16 :Column;               # i64, cycles
  end           @17 :Column;               # i64, cycles
}

struct Step {
  name      @0 :Text;
  kind      @1 :Text;
  operation @2 :Text;
  kernel    @3 :Text;
  metadata  @4 :List(Pair);
}

struct Pair {
  name  @0 :Text;
  value @1 :Text;
}

struct Run {
  cycles      @0 :UInt64;
  intervalEnd @1 :UInt64;                  # exclusive end of the run's rows
  barrierEnd  @2 :UInt32;
}

struct Column {
  sha256 @0 :Data;                         # of the array
  size   @1 :UInt64;                       # bytes of the array
  codec  @2 :UInt8;                        # 0 raw, 1 zstd
  data   @3 :Data;
}
