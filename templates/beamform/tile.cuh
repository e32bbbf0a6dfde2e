// Tiles: what a block makes. Beams vary fastest along the grid, so that blocks with the same voltages are neighbours.
// Needs     nothing
// Provides  Tile, tile_of
struct Tile {
    int beam, time, channel;  // the first beam and time
    int begin, end;  // batches, from first_batch on
};

__device__ __forceinline__ Tile tile_of(unsigned block, int n_used)
{
    Tile tile;
    tile.beam = static_cast<int>(block % BEAM_TILES) * BEAMS;
    block /= BEAM_TILES;
    tile.time = static_cast<int>(block % TIME_TILES) * TIMES;
    block /= TIME_TILES;
    const long long part = block % SPLIT;
    tile.channel = static_cast<int>(block / SPLIT);
    tile.begin = static_cast<int>(part * n_used / SPLIT);
    tile.end = static_cast<int>((part + 1) * n_used / SPLIT);
    return tile;
}
