/* Writes a page that shows where a GPT or a BERT looks: the attention weights of a text, layer by head. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rapt/nn.h>

#include "common.h"
#include "reader.h"

enum { MOST_TOKENS = 96, LABEL_BYTES = 160, CELL = 18, LETTER = 8 };

typedef struct settings {
    const char *model, *text, *out;
} settings;

/* What the page shows. */
typedef struct page {
    const char *model, *text;
    int64_t tokens, layers, heads;
    bool causal;                 /* a token sees none after it */
    char (*labels)[LABEL_BYTES]; /* [tokens], as HTML */
    int64_t widest;              /* label, in letters */
    rapt_tensor **weights;       /* [layers], each [1,heads,tokens,tokens] */
} page;

/* ---- labels ----------------------------------------------------------------------------------------------------- */

/* The length of the UTF-8 character at text, if a whole one is there; 0 if not. */
static int64_t character_at(const char *text, int64_t left) {
    const unsigned char *b = (const unsigned char *)text;
    int64_t length = b[0] < 0x80 ? 1 : b[0] >= 0xc2 && b[0] < 0xe0 ? 2 : b[0] >= 0xe0 && b[0] < 0xf0 ? 3 : 4;
    if (length > left || b[0] > 0xf4 || (b[0] >= 0x80 && b[0] < 0xc2)) return 0;
    for (int64_t i = 1; i < length; i++)
        if ((b[i] & 0xc0) != 0x80) return 0;
    return length;
}

/* How one byte that isn't shown as itself looks; NULL for others. */
static const char *shown_as(char byte, char hex[8]) {
    switch (byte) {
    case ' ':
        return "␣";
    case '\n':
        return "↵";
    case '\t':
        return "⇥";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '&':
        return "&amp;";
    case '"':
        return "&quot;";
    }
    if ((unsigned char)byte >= 0x20 && byte != 0x7f) return NULL;
    snprintf(hex, 8, "\\x%02x", (unsigned char)byte);
    return hex;
}

/* Writes text as HTML into out, as much of it as there is room for; returns how many letters that shows. */
static int64_t write_label(const char *text, int64_t bytes, size_t room, char *out) {
    int64_t letters = 0;
    size_t used = 0;
    for (int64_t i = 0; i < bytes && used + 8 < room; letters++) {
        char hex[8];
        int64_t length = character_at(text + i, bytes - i);
        const char *special = length == 1 ? shown_as(text[i], hex) : NULL;
        if (length == 0) snprintf(hex, sizeof hex, "\\x%02x", (unsigned char)text[i]);
        if (length == 0) special = hex;
        if (special == hex) letters += 3;
        used +=
            (size_t)snprintf(out + used, room - used, "%.*s", special ? 8 : (int)length, special ? special : text + i);
        i += length ? length : 1;
    }
    out[used] = '\0';
    return letters;
}

static void label_tokens(page *p, const rapt_tokenizer *tokenizer, const rapt_tensor *ids) {
    for (int64_t i = 0; i < p->tokens; i++) {
        int64_t bytes = 0;
        const char *text = rapt_tokenizer_token(tokenizer, (int64_t)rapt_at(ids, i), &bytes);
        int64_t letters = write_label(text ? text : "?", text ? bytes : 1, LABEL_BYTES, p->labels[i]);
        if (letters > p->widest) p->widest = letters;
    }
}

/* ---- the page --------------------------------------------------------------------------------------------------- */

static const char style[] =
    "body{font:14px/1.45 system-ui,sans-serif;color:#1f2937;background:#fff;margin:24px}"
    "h1{font-size:20px;margin:0 0 6px}p{margin:4px 0;max-width:80ch}code{background:#f3f4f6;padding:1px 4px}"
    ".legend{display:flex;align-items:center;gap:8px;margin:14px 0 18px}"
    ".bar{width:180px;height:14px;border:1px solid #d1d5db;background:linear-gradient(90deg,#fff,#1d4ed8)}"
    ".unseen{width:14px;height:14px;background:#e5e7eb;margin-left:20px}"
    ".maps{display:grid;gap:18px 22px}figure{margin:0}figcaption{font-weight:600;margin-bottom:2px}"
    "svg{width:100%;height:auto;display:block}text{font:11px ui-monospace,monospace;fill:#374151}"
    "rect:hover{stroke:#f59e0b;stroke-width:2}";

static void put_head(FILE *out, const page *p) {
    char text[4 * LABEL_BYTES], model[4 * LABEL_BYTES];
    write_label(p->text, (int64_t)strlen(p->text), sizeof text, text);
    write_label(p->model, (int64_t)strlen(p->model), sizeof model, model);
    int64_t side = CELL * p->tokens + LETTER * p->widest + 12;
    fprintf(out,
            "<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Attention map</title>\n"
            "<style>%s.maps{grid-template-columns:repeat(%" PRId64 ",minmax(%" PRId64 "px,%" PRId64 "px))}</style>\n",
            style, p->heads, side < 220 ? side : 220, side);
    fprintf(
        out,
        "<h1>Where the model looks</h1>\n<p><code>%s</code> reading <code>%s</code>. Each row is a token, and says how "
        "much it takes from each token%s, the columns: a row adds up to 1. ␣ is a space, ↵ a line's end. "
        "Point at a square for its figure.</p>\n"
        "<div class=\"legend\">weight 0 <span class=\"bar\"></span> 1%s</div>\n<div class=\"maps\">\n",
        model, text, p->causal ? " up to itself" : "",
        p->causal ? " <span class=\"unseen\"></span> a later token, hidden from this one" : "");
}

static void put_labels(FILE *out, const page *p, int64_t margin) {
    for (int64_t i = 0; i < p->tokens; i++) {
        int64_t middle = margin + CELL * i + CELL / 2;
        fprintf(out, "<text x=\"%" PRId64 "\" y=\"%" PRId64 "\" text-anchor=\"end\">%s</text>", margin - 5, middle + 4,
                p->labels[i]);
        fprintf(out, "<text transform=\"translate(%" PRId64 ",%" PRId64 ") rotate(-90)\">%s</text>\n", middle + 4,
                margin - 5, p->labels[i]);
    }
}

static void put_squares(FILE *out, const page *p, int64_t layer, int64_t head, int64_t margin) {
    for (int64_t i = 0; i < p->tokens; i++) {
        for (int64_t j = 0; j < (p->causal ? i + 1 : p->tokens); j++) {
            double weight = rapt_at(p->weights[layer], (head * p->tokens + i) * p->tokens + j);
            fprintf(out,
                    "<rect x=\"%" PRId64 "\" y=\"%" PRId64 "\" width=\"%d\" height=\"%d\" fill=\"#1d4ed8\" "
                    "fill-opacity=\"%.3f\"><title>%s → %s: %.3f</title></rect>",
                    margin + CELL * j, margin + CELL * i, CELL - 1, CELL - 1, weight, p->labels[i], p->labels[j],
                    weight);
        }
        fputc('\n', out);
    }
}

static void put_map(FILE *out, const page *p, int64_t layer, int64_t head) {
    int64_t margin = LETTER * p->widest + 12, size = CELL * p->tokens, side = margin + size;
    fprintf(out,
            "<figure><figcaption>layer %" PRId64 ", head %" PRId64 "</figcaption><svg viewBox=\"0 0 %" PRId64
            " %" PRId64 "\">\n",
            layer + 1, head + 1, side, side);
    put_labels(out, p, margin);
    for (int64_t i = 0; i < p->tokens && p->causal; i++) /* what each row may see is white, the rest is not */
        fprintf(out, "<path fill=\"#e5e7eb\" d=\"M%" PRId64 " %" PRId64 "h%" PRId64 "v%dh%" PRId64 "z\"/>",
                margin + CELL * (i + 1), margin + CELL * i, CELL * (p->tokens - 1 - i), CELL,
                -CELL * (p->tokens - 1 - i));
    fputc('\n', out);
    put_squares(out, p, layer, head, margin);
    fprintf(out,
            "<path fill=\"none\" stroke=\"#9ca3af\" d=\"M%" PRId64 " %" PRId64 "h%" PRId64 "v%" PRId64 "h%" PRId64
            "z\"/></svg></figure>\n",
            margin, margin, size, size, -size);
}

static void put_page(FILE *out, const page *p) {
    put_head(out, p);
    for (int64_t layer = 0; layer < p->layers; layer++)
        for (int64_t head = 0; head < p->heads; head++) put_map(out, p, layer, head);
    fputs("</div></html>\n", out);
}

static void write_page(rapt_ctx *ctx, const char *path, const page *p) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (out) put_page(out, p);
    bool complete = out && !ferror(out);
    complete = out && fclose(out) == 0 && complete;
    if (complete)
        rapt_file_write(ctx, path, text, (int64_t)bytes);
    else
        rapt_fail(ctx, RAPT_ERROR_MEMORY, "%s: no memory for the page", path);
    free(text);
}

/* ---- the program ------------------------------------------------------------------------------------------------ */

static bool check_length(rapt_ctx *ctx, int64_t tokens) {
    if (rapt_ctx_status(ctx) != RAPT_OK) return false;
    if (tokens > MOST_TOKENS)
        rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "the text has %" PRId64 " tokens; more than %d can't be told apart", tokens,
                  MOST_TOKENS);
    return rapt_ctx_status(ctx) == RAPT_OK;
}

static void show(rapt_ctx *ctx, const settings *s) {
    reader r;
    if (!reader_load(ctx, s->model, &r)) return;
    rapt_tensor *ids = reader_ids(&r, s->text);
    if (!check_length(ctx, rapt_size(ids))) return;
    page p = {.model = s->model,
              .text = s->text,
              .tokens = rapt_size(ids),
              .layers = r.layers,
              .heads = r.heads,
              .causal = r.gpt,
              .labels = rapt_object_new(ctx, (size_t)rapt_size(ids) * LABEL_BYTES, NULL),
              .weights = rapt_object_new(ctx, (size_t)r.layers * sizeof *p.weights, NULL)};
    if (rapt_ctx_status(ctx) != RAPT_OK || !reader_read(&r, ids, p.weights, NULL)) return;
    label_tokens(&p, r.tokenizer, ids);
    write_page(ctx, s->out, &p);
}

int main(int arguments, char **argument) {
    settings s = {.text = "To be, or not to be", .out = "attention.html"};
    option options[] = {
        {"model", OPTION_TEXT, &s.model, .help = "folder of a GPT or BERT, saved here or by Hugging Face"},
        {"text", OPTION_TEXT, &s.text, .help = "what it reads"},
        {"out", OPTION_TEXT, &s.out, .help = "the page, for any browser"},
    };
    command_line line = {.program = "attention_map",
                         .summary = "Writes a page that shows where a GPT or a BERT looks. Example:\n"
                                    "  attention_map --model gpt-out --text \"To be, or not to be\"",
                         .options = options,
                         .count = (int)(sizeof options / sizeof *options)};
    command what = parse_command_line(&line, arguments, argument);
    if (what != COMMAND_RUN) return exit_status(what);
    if (!s.model) {
        complain(&line, "--model is needed: the folder of a trained model");
        return EXIT_USAGE;
    }
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_mark mark = rapt_evaluation(ctx);
    show(ctx, &s);
    rapt_scope_end(mark);
    bool done = rapt_ctx_status(ctx) == RAPT_OK;
    if (done)
        printf("wrote %s\n", s.out);
    else
        complain(&line, "%s", rapt_ctx_error(ctx));
    rapt_ctx_free(ctx);
    return finish_output(&line) && done ? EXIT_DONE : EXIT_FAILED;
}
