#include "nn/text/map.h"

#include "core/memory.h"

/* The slot that has the key, or would have it. */
static rapt__map_slot *slot_for(const rapt__map *map, uint64_t key) {
    uint64_t mask = (uint64_t)map->capacity - 1, i = rapt__hash(key) & mask;
    while (map->slots[i].value >= 0 && map->slots[i].key != key) i = (i + 1) & mask;
    return &map->slots[i];
}

static bool widen(rapt_ctx *ctx, rapt__map *map) {
    rapt__map wider = {.count = map->count, .capacity = map->capacity ? map->capacity * 2 : 64};
    wider.slots = rapt__take(ctx, (size_t)wider.capacity * sizeof *wider.slots);
    if (!wider.slots) return false;
    for (int64_t i = 0; i < wider.capacity; i++) wider.slots[i] = (rapt__map_slot){.value = -1};
    for (int64_t i = 0; i < map->capacity; i++)
        if (map->slots[i].value >= 0) *slot_for(&wider, map->slots[i].key) = map->slots[i];
    rapt__give(map->slots);
    *map = wider;
    return true;
}

bool rapt__map_put(rapt_ctx *ctx, rapt__map *map, uint64_t key, int32_t value) {
    if (map->count * 2 >= map->capacity && !widen(ctx, map)) return false;
    rapt__map_slot *slot = slot_for(map, key);
    map->count += slot->value < 0;
    *slot = (rapt__map_slot){key, value};
    return true;
}

void rapt__map_free(rapt__map *map) {
    rapt__give(map->slots);
    *map = (rapt__map){0};
}
