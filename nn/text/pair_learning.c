#include "nn/text/pair_learning.h"

#include <stdlib.h>

#include "core/memory.h"

/* ---- words and symbols ------------------------------------------------------------------------------------------ */

bool rapt__learning_count_word(rapt__pair_learning *l, const char *text, int64_t bytes) {
    int64_t known = l->words.count;
    int32_t word = rapt__vocabulary_add(&l->words, text, bytes);
    if (word < 0) return false;
    if (word == known) {
        if (!rapt__grow(l->ctx, (void **)&l->word_counts, known, &l->word_counts_capacity, sizeof *l->word_counts))
            return false;
        l->word_counts[word] = 0;
    }
    l->word_counts[word]++;
    return true;
}

bool rapt__learning_add_symbol(rapt__pair_learning *l, int32_t word, int32_t symbol, bool after_gap) {
    int64_t count = l->occurrence_count;
    if (count == INT32_MAX) {
        rapt_fail(l->ctx, RAPT_ERROR_MEMORY, "tokenizer: the distinct words have more than 2147483647 characters");
        return false;
    }
    if (!rapt__grow(l->ctx, (void **)&l->occurrences, count, &l->occurrence_capacity, sizeof *l->occurrences))
        return false;
    rapt__occurrence *own = &l->occurrences[count];
    bool joined = count > 0 && own[-1].word == word && !after_gap;
    *own = (rapt__occurrence){symbol, word, joined ? (int32_t)count - 1 : -1, -1};
    if (joined) own[-1].next = (int32_t)count;
    l->occurrence_count++;
    return true;
}

/* ---- candidates: a heap ----------------------------------------------------------------------------------------- */

static bool goes_before(const rapt__pair_learning *l, rapt__candidate a, rapt__candidate b) {
    if (a.count != b.count) return a.count > b.count;
    const rapt__pair *x = &l->pairs[a.pair], *y = &l->pairs[b.pair];
    return x->left != y->left ? x->left < y->left : x->right < y->right;
}

static bool push(rapt__pair_learning *l, int32_t pair) {
    if (!rapt__grow(l->ctx, (void **)&l->heap, l->heap_count, &l->heap_capacity, sizeof *l->heap)) return false;
    rapt__candidate candidate = {l->pairs[pair].count, pair};
    int64_t i = l->heap_count++;
    for (; i > 0 && goes_before(l, candidate, l->heap[(i - 1) / 2]); i = (i - 1) / 2) l->heap[i] = l->heap[(i - 1) / 2];
    l->heap[i] = candidate;
    return true;
}

static void sink_from_top(rapt__pair_learning *l, rapt__candidate candidate) {
    rapt__candidate *heap = l->heap;
    int64_t i = 0;
    for (int64_t child = 1; child < l->heap_count; i = child, child = 2 * i + 1) {
        if (child + 1 < l->heap_count && goes_before(l, heap[child + 1], heap[child])) child++;
        if (!goes_before(l, heap[child], candidate)) break;
        heap[i] = heap[child];
    }
    heap[i] = candidate;
}

static void pop(rapt__pair_learning *l) {
    rapt__candidate last = l->heap[--l->heap_count];
    if (l->heap_count > 0) sink_from_top(l, last);
}

/* Counts that have risen were pushed again; one that has fallen is put in its place when it comes to the top. */
bool rapt__learning_best(rapt__pair_learning *l, int64_t min_count, int32_t *left, int32_t *right) {
    while (l->heap_count > 0) {
        rapt__candidate top = l->heap[0];
        const rapt__pair *pair = &l->pairs[top.pair];
        if (pair->count < min_count || pair->count > top.count) {
            pop(l);
        } else if (pair->count < top.count) {
            top.count = pair->count;
            sink_from_top(l, top);
        } else {
            *left = pair->left;
            *right = pair->right;
            return true;
        }
    }
    return false;
}

/* ---- pairs ------------------------------------------------------------------------------------------------------ */

/* -1, with the error set, when out of memory. */
static int32_t number_of(rapt__pair_learning *l, int32_t left, int32_t right) {
    uint64_t key = rapt__pair_key(left, right);
    int32_t number = rapt__map_get(&l->pair_numbers, key);
    if (number >= 0) return number;
    number = (int32_t)l->pair_count;
    if (!rapt__grow(l->ctx, (void **)&l->pairs, l->pair_count, &l->pair_capacity, sizeof *l->pairs)) return -1;
    if (!rapt__map_put(l->ctx, &l->pair_numbers, key, number)) return -1;
    l->pairs[l->pair_count++] = (rapt__pair){left, right, 0, -1};
    return number;
}

static bool add_place(rapt__pair_learning *l, int32_t number, int32_t occurrence) {
    if (l->place_count == INT32_MAX) {
        rapt_fail(l->ctx, RAPT_ERROR_MEMORY, "tokenizer: pairs stand in more than 2147483647 places");
        return false;
    }
    if (!rapt__grow(l->ctx, (void **)&l->places, l->place_count, &l->place_capacity, sizeof *l->places)) return false;
    l->places[l->place_count] = (rapt__pair_place){occurrence, l->pairs[number].places};
    l->pairs[number].places = (int32_t)l->place_count++;
    return true;
}

/* Counts the pair that begins at an occurrence. */
static bool add_pair_at(rapt__pair_learning *l, int32_t occurrence) {
    const rapt__occurrence *own = occurrence < 0 ? NULL : &l->occurrences[occurrence];
    if (!own || own->next < 0) return true;
    int32_t number = number_of(l, own->symbol, l->occurrences[own->next].symbol);
    if (number < 0 || !add_place(l, number, occurrence)) return false;
    l->pairs[number].count += l->word_counts[own->word];
    if (!rapt__grow(l->ctx, (void **)&l->grown, l->grown_count, &l->grown_capacity, sizeof *l->grown)) return false;
    l->grown[l->grown_count++] = number;
    return true;
}

static void remove_pair_at(rapt__pair_learning *l, int32_t occurrence) {
    const rapt__occurrence *own = occurrence < 0 ? NULL : &l->occurrences[occurrence];
    if (!own || own->next < 0) return;
    int32_t number = rapt__map_get(&l->pair_numbers, rapt__pair_key(own->symbol, l->occurrences[own->next].symbol));
    l->pairs[number].count -= l->word_counts[own->word];
}

static int ascending(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}

static void sort_ascending(int32_t *numbers, int64_t count) {
    if (count > 1) qsort(numbers, (size_t)count, sizeof *numbers, ascending);
}

/* Each pair once. */
static bool push_grown(rapt__pair_learning *l) {
    sort_ascending(l->grown, l->grown_count);
    for (int64_t i = 0; i < l->grown_count; i++)
        if ((i == 0 || l->grown[i] != l->grown[i - 1]) && !push(l, l->grown[i])) return false;
    l->grown_count = 0;
    return true;
}

bool rapt__learning_begin(rapt__pair_learning *l) {
    for (int32_t i = 0; i < l->occurrence_count; i++)
        if (!add_pair_at(l, i)) return false;
    return push_grown(l);
}

/* ---- merging ---------------------------------------------------------------------------------------------------- */

/* Moves a pair's places to merging, in order. */
static bool take_places(rapt__pair_learning *l, rapt__pair *pair) {
    l->merging_count = 0;
    for (int32_t place = pair->places; place >= 0; place = l->places[place].next) {
        if (!rapt__grow(l->ctx, (void **)&l->merging, l->merging_count, &l->merging_capacity, sizeof *l->merging))
            return false;
        l->merging[l->merging_count++] = l->places[place].occurrence;
    }
    pair->places = -1;
    sort_ascending(l->merging, l->merging_count);
    return true;
}

/* The neighbours' pairs with the two symbols go, those with the one that takes their place come. */
static bool merge_at(rapt__pair_learning *l, int32_t at, int32_t result) {
    rapt__occurrence *own = &l->occurrences[at], *gone = &l->occurrences[own->next];
    remove_pair_at(l, own->previous);
    remove_pair_at(l, at);
    remove_pair_at(l, own->next);
    own->symbol = result;
    own->next = gone->next;
    gone->symbol = -1;
    if (own->next >= 0) l->occurrences[own->next].previous = at;
    return add_pair_at(l, own->previous) && add_pair_at(l, at);
}

bool rapt__learning_merge(rapt__pair_learning *l, int32_t left, int32_t right, int32_t result) {
    int32_t number = rapt__map_get(&l->pair_numbers, rapt__pair_key(left, right));
    if (number < 0 || !take_places(l, &l->pairs[number])) return false;
    for (int64_t i = 0; i < l->merging_count; i++) {
        const rapt__occurrence *own = &l->occurrences[l->merging[i]];
        bool stands = own->symbol == left && own->next >= 0 && l->occurrences[own->next].symbol == right;
        if (stands && !merge_at(l, l->merging[i], result)) return false;
    }
    return push_grown(l);
}

void rapt__learning_free(rapt__pair_learning *l) {
    rapt__vocabulary_free(&l->words);
    rapt__map_free(&l->pair_numbers);
    rapt__give(l->word_counts);
    rapt__give(l->occurrences);
    rapt__give(l->pairs);
    rapt__give(l->places);
    rapt__give(l->heap);
    rapt__give(l->merging);
    rapt__give(l->grown);
}
