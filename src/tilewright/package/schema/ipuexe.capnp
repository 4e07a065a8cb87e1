# The file form of a package (see ../records.py for what the fields mean), version 1.
# An incompatible change gets a new file id, so that no reader mistakes one form for another.
#
# One unpacked message per file. Tables with one row per tile, slice, mark or word are `Data`: the packed
# little-endian rows of the NumPy record type named beside them.

@0xb7f0c52ae4d9613d;

struct Package {
  version         @0  :UInt32;
  target          @1  :Text;
  tileMemoryBase  @2  :UInt32;
  tileMemorySize  @3  :UInt32;
  compilerVersion @4  :Text;
  blobs           @5  :List(Blob);
  images          @6  :List(Image);
  tiles           @7  :Data;               # TILE_IMAGE
  inputs          @8  :List(Binding);
  outputs         @9  :List(Binding);
  weights         @10 :List(Binding);
  hostExchange    @11 :HostExchange;
  entryPoints     @12 :List(EntryPoint);
  configWrites    @13 :List(ConfigWrite);
  steps           @14 :List(Step);
  markTables      @15 :List(Data);         # MARK
  provisional     @16 :Data;               # PROVISIONAL_WORD
  digest          @17 :Data;               # SHA-256 of the meaning: every field above, none below
  debug           @18 :Debug;
}

struct Blob {
  sha256 @0 :Data;                         # of the uncompressed bytes
  size   @1 :UInt64;                       # uncompressed
  codec  @2 :UInt8;                        # 0 raw, 1 zstd
  data   @3 :Data;
}

struct Segment {
  address    @0 :UInt32;
  memorySize @1 :UInt32;
  blob       @2 :UInt32 = 0xffffffff;      # 0xffffffff: none
  blobOffset @3 :UInt64;
  fileSize   @4 :UInt32;
  flags      @5 :UInt32;
}

struct Image {
  entryPoint        @0 :UInt32;
  commandAddress    @1 :UInt32;
  diagnosticAddress @2 :UInt32;
  segments          @3 :List(Segment);
  markTable         @4 :UInt32 = 0xffffffff;
}

struct Binding {
  name        @0 :Text;
  hostDtype   @1 :Text;
  deviceDtype @2 :Text;
  shape       @3 :List(UInt32);
  order       @4 :Text;
  viewRows    @5 :UInt32;
  viewColumns @6 :UInt32;
  slices      @7 :Data;                    # SLICE
  blob        @8 :UInt32 = 0xffffffff;
}

struct HostPage {
  index @0 :UInt32;
  size  @1 :UInt64;
}

struct HostCall {
  name            @0 :Text;
  command         @1 :UInt32;
  phases          @2 :UInt32;
  inputs          @3 :Data;                # HOST_SLICE
  outputs         @4 :Data;                # HOST_SLICE
  invocations     @5 :UInt32 = 1;
  inputBatchEnds  @6 :List(UInt32);
  outputBatchEnds @7 :List(UInt32);
}

struct HostExchange {
  startupMark   @0 :UInt32;
  commandPage   @1 :UInt32;
  commandOffset @2 :UInt64;
  pages         @3 :List(HostPage);
  attachOrder   @4 :List(UInt32);
  calls         @5 :List(HostCall);
}

struct EntryPoint {
  name          @0 :Text;
  command       @1 :UInt32;
  externalSyncs @2 :UInt32;
}

struct ConfigWrite {
  offset @0 :UInt32;
  value  @1 :UInt32;
}

struct Step {
  name @0 :Text;
  kind @1 :Text;
}

struct Debug {
  digest      @0 :Data;                    # SHA-256 of the rest of this section
  symbols     @1 :List(Symbol);
  regions     @2 :List(Region);
  hasText     @3 :Bool;                    # whether the package has the fields below at all
  graph       @4 :Blob;
  layouts     @5 :Blob;
  liveNames   @6 :List(Text);              # each name once
  liveEnds    @7 :Data;                    # u32 per step: end of its run in liveIndices
  liveIndices @8 :Data;                    # u32 into liveNames
  hasProgram  @9 :Bool;
  program     @10 :Program;
  lineFiles   @11 :List(Text);
  lines       @12 :Blob;                   # i32 differences of LINE's columns, one column after another
}

struct Program {
  buffers    @0 :List(Buffer);
  classes    @1 :List(TileClass);
  steps      @2 :List(StepInfo);
  operations @3 :List(Operation);
  values     @4 :List(Value);
  constants  @5 :List(Constant);
  loops      @6 :List(Loop);
  areas      @7 :List(Area);
  placed     @8 :Blob;                     # PLACED, of all classes one after another
  slices     @9 :Blob;                     # SLICE, of all values one after another
}

struct Buffer {
  name   @0 :Text;
  role   @1 :Text;
  owner  @2 :Text;
  layout @3 :Text;
}

struct TileClass {
  tiles     @0 :Data;                      # u16, physical ids
  placedEnd @1 :UInt32;                    # exclusive end of its rows in placed
}

struct StepInfo {
  operation @0 :Text;
  kernel    @1 :Text;
  cycles    @2 :Float64;
  detail    @3 :Text;
}

struct Operation {
  name   @0 :Text;
  plan   @1 :List(Text);
  splits @2 :UInt32;
  partOf @3 :Text;
}

struct Value {
  binding  @0 :Binding;                    # its slices are in Program.slices
  sliceEnd @1 :UInt32;
  step     @2 :UInt32;
  buffer   @3 :UInt32;
  owner    @4 :Text;
  copy     @5 :Bool;
}

struct Constant {
  binding  @0 :Text;
  constant @1 :Text;
  shape    @2 :List(UInt32);
  iterations @3 :UInt32 = 1;
  rows       @4 :List(UInt32);             # first, groups, width of each, width with padding; empty: all
  columns    @5 :List(UInt32);
  transposed @6 :Bool;
  broadcast  @7 :List(UInt32);             # empty: none
}

struct Loop {
  first @0 :UInt32;
  last  @1 :UInt32;
  count @2 :UInt32;
}

struct Area {
  name    @0 :Text;
  address @1 :UInt32;
  size    @2 :UInt32;
}

struct Symbol {
  name    @0 :Text;
  address @1 :UInt32;
}

struct Region {
  physicalTile @0 :UInt32;
  address      @1 :UInt32;
  size         @2 :UInt32;
  name         @3 :Text;
}
