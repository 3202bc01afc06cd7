/* rapt/core.h: contexts, tensors, scopes, the tape, operations as records, parameters, files.
 *
 * Rules that hold everywhere:
 *   - A tensor returned by a function belongs to the innermost open scope of its context, unless its comment says
 *     otherwise. It lives until that scope ends; rapt_keep() makes it live longer.
 *   - The first error stays in the context, with a message that names the operation, the reason and the shapes. A
 *     failed function returns the context's nil tensor (or a NULL object); every later call on that context does
 *     nothing and passes nil on, until rapt_ctx_clear(). So one check at the end of a step is enough.
 *   - A NULL pointer means "optional argument absent" where a function says so, and is an error elsewhere.
 *   - A NULL object (a context, model, layer, file, …) is what its maker returned when it failed, with the error in
 *     the context already. Functions that are given one do nothing, say nothing, and return nil or NULL, an error
 *     status, 0, false or NaN; so do those whose NULL arguments leave no context to tell. Nothing crashes on a NULL.
 *   - A context is used by one thread at a time. Different contexts may be used by different threads at once.
 */
#ifndef RAPT_CORE_H
#define RAPT_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "rapt needs strict floating point (it tells masked from unmasked by -inf): build without -ffast-math and -Ofast"
#endif

#if defined(_WIN32)
#define RAPT_API
#else
#define RAPT_API __attribute__((visibility("default")))
#endif
#if defined(__GNUC__)
#define RAPT_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define RAPT_PRINTF(text, first)
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum {
    RAPT_MAX_DIMS = 8, /* dimensions of a tensor */
    RAPT_MAX_SAVED = 2 /* buffers that an operation's forward may leave for its backward */
};

typedef struct rapt_ctx rapt_ctx;
typedef struct rapt_tensor rapt_tensor;
typedef struct rapt_params rapt_params;
typedef struct rapt_json rapt_json;
typedef struct rapt_safetensors rapt_safetensors;

typedef enum rapt_status {
    RAPT_OK = 0,
    RAPT_ERROR_ARGUMENT, /* a value out of range, an id outside a table, an unknown name */
    RAPT_ERROR_SHAPE,    /* shapes that don't fit together */
    RAPT_ERROR_TYPE,     /* an element type that doesn't fit */
    RAPT_ERROR_MEMORY,   /* an allocation failed, or a size overflowed */
    RAPT_ERROR_STATE,    /* a call at the wrong time: backward twice, a tensor after its scope */
    RAPT_ERROR_FILE,     /* a file that can't be read or written, or whose content is malformed */
    RAPT_ERROR_NUMBER    /* a NaN or infinity where a finite number is needed */
} rapt_status;

/* Element types. RAPT_F32 is zero, the default of every configuration. */
typedef enum rapt_type { RAPT_F32 = 0, RAPT_F64, RAPT_I32, RAPT_I64, RAPT_BOOL } rapt_type;

RAPT_API size_t rapt_type_bytes(rapt_type type);     /* 4, 8, 4, 8, 1 */
RAPT_API const char *rapt_type_name(rapt_type type); /* "f32", "f64", "i32", "i64", "bool" */

/* ---- context ------------------------------------------------------------------------------------------------ */

/* The caller's own memory. allocate returns NULL when there is none; release is given the same size. Both may be
 * called from several threads at once if tensors are shared between contexts. */
typedef struct rapt_allocator {
    void *(*allocate)(void *user, size_t bytes);
    void (*release)(void *user, void *block, size_t bytes);
    void *user;
} rapt_allocator;

typedef struct rapt_ctx_config {
    int threads;              /* 0: as many as this process may really use (affinity, container quota) */
    uint64_t seed;            /* of every random number drawn in this context */
    rapt_allocator allocator; /* all zero: malloc and free */
    /* Called once, when the first error is set; for logging or a breakpoint. */
    void (*on_error)(void *user, rapt_status status, const char *message);
    void *on_error_user;
} rapt_ctx_config;

/* NULL config: all defaults. Returns NULL only when out of memory; every function accepts that NULL and reports
 * RAPT_ERROR_MEMORY. With RAPT_ABORT_ON_ERROR=1 in the environment the first error calls abort(), for debuggers. */
RAPT_API rapt_ctx *rapt_ctx_new(const rapt_ctx_config *config);

/* Frees everything made in the context: tensors, parameters, models, optimisers. NULL is fine. */
RAPT_API void rapt_ctx_free(rapt_ctx *ctx);

RAPT_API rapt_status rapt_ctx_status(const rapt_ctx *ctx); /* the first error since the last clear */
RAPT_API const char *rapt_ctx_error(const rapt_ctx *ctx);  /* its message; "" when there is none */
RAPT_API void rapt_ctx_clear(rapt_ctx *ctx);               /* forgets the error; tensors are as they were */
RAPT_API int rapt_ctx_threads(const rapt_ctx *ctx);

/* Sets the context's error, if it has none yet, and returns status. */
RAPT_API rapt_status rapt_fail(rapt_ctx *ctx, rapt_status status, const char *format, ...) RAPT_PRINTF(3, 4);

typedef struct rapt_memory {
    int64_t live_bytes;   /* in use by tensors and objects now */
    int64_t peak_bytes;   /* the most that were ever in use at once */
    int64_t held_bytes;   /* taken from the allocator and not given back, free blocks included */
    int64_t allocations;  /* calls of the allocator so far; stays the same in a steady training loop */
    int64_t live_tensors; /* handles alive */
    int64_t tape_length;  /* operations recorded and not yet spent */
} rapt_memory;

RAPT_API rapt_memory rapt_ctx_memory(const rapt_ctx *ctx);
RAPT_API void rapt_ctx_trim(rapt_ctx *ctx); /* gives free blocks back to the allocator */

/* Zeroed memory that lives until rapt_object_free() or rapt_ctx_free(), whichever is first; then destroy(object), if
 * any, is called before the memory goes. Models and optimisers are such objects. NULL when out of memory. */
RAPT_API void *rapt_object_new(rapt_ctx *ctx, size_t bytes, void (*destroy)(void *object));
RAPT_API void rapt_object_free(void *object); /* NULL is fine */

/* ---- scopes ------------------------------------------------------------------------------------------------- */

typedef enum rapt_mode {
    RAPT_NO_GRAD = 1,     /* nothing is recorded on the tape */
    RAPT_EVALUATE = 2,    /* dropout does nothing and draws nothing */
    RAPT_TO_BE_LOADED = 4 /* new parameters are zeros until rapt_params_load() */
} rapt_mode;

typedef struct rapt_mark {
    rapt_ctx *ctx;
    int64_t tensors, tape, depth;
    unsigned modes;
} rapt_mark;

RAPT_API rapt_mark rapt_scope_begin(rapt_ctx *ctx);
RAPT_API rapt_mark rapt_no_grad(rapt_ctx *ctx);    /* a scope with RAPT_NO_GRAD */
RAPT_API rapt_mark rapt_evaluation(rapt_ctx *ctx); /* a scope with RAPT_NO_GRAD and RAPT_EVALUATE */
/* A scope for making a model that is loaded next: drawing the weights of a large one takes longer than reading them.
 * Loading gives the parameters that it may leave out their initial values, the same as without this. */
RAPT_API rapt_mark rapt_to_be_loaded(rapt_ctx *ctx);

/* Ends the scope, and any inner one still open: its tensors and what it recorded on the tape are gone. Ending one that
 * an outer one has ended already does nothing. */
RAPT_API void rapt_scope_end(rapt_mark mark);

/* Ends the scope as a function returns: y moves to the outer scope, temporaries go, the tape keeps what backward
 * needs. Returns y. */
RAPT_API rapt_tensor *rapt_scope_return(rapt_mark mark, rapt_tensor *y);

RAPT_API rapt_tensor *rapt_keep(rapt_tensor *t); /* t now outlives its scope, until as many drops; returns t */
RAPT_API void rapt_drop(rapt_tensor *t);

RAPT_API bool rapt_recording(const rapt_ctx *ctx);  /* false inside RAPT_NO_GRAD */
RAPT_API bool rapt_evaluating(const rapt_ctx *ctx); /* true inside RAPT_EVALUATE */

/* ---- tensors ------------------------------------------------------------------------------------------------ */

/* Row-major, zeros. ndim 0 is a scalar; sizes may be 0. */
RAPT_API rapt_tensor *rapt_zeros(rapt_ctx *ctx, rapt_type type, int ndim, const int64_t *shape);
RAPT_API rapt_tensor *rapt_full(rapt_ctx *ctx, rapt_type type, int ndim, const int64_t *shape, double value);
/* Copies values, row-major, of the tensor's own element type. */
RAPT_API rapt_tensor *rapt_from(rapt_ctx *ctx, rapt_type type, int ndim, const int64_t *shape, const void *values);
RAPT_API rapt_tensor *rapt_scalar(rapt_ctx *ctx, rapt_type type, double value); /* shape [] */
/* f32 or f64, normally distributed, from the context's next random stream. */
RAPT_API rapt_tensor *rapt_randn(rapt_ctx *ctx, rapt_type type, int ndim, const int64_t *shape, double deviation);

RAPT_API rapt_tensor *rapt_nil(rapt_ctx *ctx);         /* what failed functions return */
RAPT_API bool rapt_is_nil(const rapt_tensor *t);       /* also true of NULL */
RAPT_API rapt_ctx *rapt_ctx_of(const rapt_tensor *t);  /* NULL of NULL */
RAPT_API rapt_type rapt_type_of(const rapt_tensor *t); /* the nil tensor: f32 */
RAPT_API int rapt_ndim(const rapt_tensor *t);
RAPT_API int64_t rapt_size(const rapt_tensor *t);           /* number of elements; nil: 0 */
RAPT_API int64_t rapt_dim(const rapt_tensor *t, int axis);  /* negative axes count from the end; 0 outside */
RAPT_API const int64_t *rapt_shape(const rapt_tensor *t);   /* [ndim], lives as long as t */
RAPT_API const int64_t *rapt_strides(const rapt_tensor *t); /* [ndim], in elements */
RAPT_API bool rapt_is_contiguous(const rapt_tensor *t);     /* row-major without gaps */

/* The first element; other elements by rapt_strides(). rapt_data_mut() counts as a write: a tensor that backward
 * still needs then makes backward fail rather than compute with the new values. NULL of nil. */
RAPT_API const void *rapt_data(const rapt_tensor *t);
RAPT_API void *rapt_data_mut(rapt_tensor *t);

RAPT_API double rapt_item(const rapt_tensor *t); /* the value of a tensor of one element; NaN if it isn't one */
/* Element i in row-major order, whatever the strides and type; NaN outside. */
RAPT_API double rapt_at(const rapt_tensor *t, int64_t i);
/* Copies all elements out, row-major, in t's own type. bytes must be the exact size. */
RAPT_API rapt_status rapt_read(const rapt_tensor *t, void *out, size_t bytes);
/* Overwrites t (not differentiable): values row-major in t's own type; or another tensor's values, same shape,
 * converted. */
RAPT_API rapt_status rapt_write(rapt_tensor *t, const void *values, size_t bytes);
RAPT_API rapt_status rapt_assign(rapt_tensor *t, const rapt_tensor *from);

/* A handle in ctx on the same storage, without gradient: another thread's context can then read the same weights. */
RAPT_API rapt_tensor *rapt_share(rapt_ctx *ctx, const rapt_tensor *t);

/* ---- differentiation ---------------------------------------------------------------------------------------- */

/* Marks a leaf (no result of an operation) as wanting a gradient. It must be contiguous f32 or f64. Returns t. */
RAPT_API rapt_tensor *rapt_requires_grad(rapt_tensor *t);
RAPT_API bool rapt_has_grad_path(const rapt_tensor *t); /* a gradient would flow into it */
/* The same values outside the graph. */
RAPT_API rapt_tensor *rapt_detach(rapt_tensor *t);

/* Adds d loss / d leaf to the gradient of every leaf that wants one. Spends the tape: everything recorded so far is
 * gone afterwards. loss must have one element. After an error the leaves that were reached have no gradient. */
RAPT_API rapt_status rapt_backward(rapt_tensor *loss);
/* The same from any tensor y, with the gradient that flows into it, of y's shape and type. */
RAPT_API rapt_status rapt_backward_from(rapt_tensor *y, rapt_tensor *gradient);

/* y = f(user, in), of which the tape keeps the inputs alone: what f computes on the way goes at once, and backward runs
 * f again to have it back. Takes a second forward's time for the memory; gradients are the same bits as without, since
 * random numbers drawn in f (dropout) are the same ones both times.
 * user_bytes at user are copied. `in` (entries may be NULL, not all) must hold every tensor that f uses and that its
 * caller's scope owns: they live until backward has run. Leaves, such as parameters, need not be among them, and must
 * not be written before backward. f must give the same result each time and change nothing: no backward in it, and no
 * tensor handed out but the one it returns. Where nothing is recorded this is a plain call of f in a scope of its own.
 */
typedef rapt_tensor *rapt_function(const void *user, rapt_tensor *const *in);
RAPT_API rapt_tensor *rapt_checkpoint(rapt_function *f, const void *user, size_t user_bytes, int inputs,
                                      rapt_tensor *const *in);

/* A leaf's gradient as a view (writing to it changes it, until the next backward), or nil, without an error, if nothing
 * has flowed into it. */
RAPT_API rapt_tensor *rapt_grad(rapt_tensor *t);
RAPT_API void rapt_clear_grad(rapt_tensor *t);

/* ---- random numbers ----------------------------------------------------------------------------------------- */

/* Philox4x32-10 (Salmon et al. 2011): number `index` of stream `stream` under `seed`. Values depend on nothing else,
 * so any thread may draw any of them. */
RAPT_API uint64_t rapt_random_bits(uint64_t seed, uint64_t stream, uint64_t index);
RAPT_API double rapt_random_uniform(uint64_t seed, uint64_t stream, uint64_t index); /* in [0, 1) */
RAPT_API double rapt_random_normal(uint64_t seed, uint64_t stream, uint64_t index);  /* mean 0, deviation 1 */

/* Where i comes in a random order of 0 … count-1: each place once, found without the others (a Feistel network).
 * -1 if i is none of them. */
RAPT_API int64_t rapt_random_permuted(uint64_t seed, uint64_t stream, int64_t count, int64_t i);

typedef struct rapt_random_state {
    uint64_t seed;
    uint64_t next_stream;
} rapt_random_state;

RAPT_API uint64_t rapt_next_stream(rapt_ctx *ctx); /* a stream nobody else in this context uses */
RAPT_API rapt_random_state rapt_random_get(const rapt_ctx *ctx);
RAPT_API void rapt_random_set(rapt_ctx *ctx, rapt_random_state state); /* what a resumed run needs */

/* ---- threads ------------------------------------------------------------------------------------------------ */

/* Calls body(arg, chunk, thread) for chunk = 0 … chunks-1, each once, on the context's threads (thread is in
 * 0 … rapt_ctx_threads()-1). Returns when all are done. For the same bits with any number of threads, let the chunks
 * depend on the problem alone and combine their results in order. Must not be nested. */
RAPT_API void rapt_parallel(rapt_ctx *ctx, int64_t chunks, void (*body)(void *arg, int64_t chunk, int thread),
                            void *arg);

/* ---- operations --------------------------------------------------------------------------------------------- */

/* What an operation sees of a tensor. Elements of an input are contiguous unless the operation asked for strides. */
typedef struct rapt_array {
    rapt_type type;
    int ndim;
    int64_t shape[RAPT_MAX_DIMS];
    int64_t stride[RAPT_MAX_DIMS]; /* in elements */
    int64_t size;
    void *data; /* NULL for an optional input that is absent */
} rapt_array;

/* Where backward puts the gradient of one input. */
typedef struct rapt_gradient {
    void *data;                    /* NULL: not wanted */
    bool add;                      /* true: add to what is there; false: store, the memory is uninitialised */
    int64_t stride[RAPT_MAX_DIMS]; /* contiguous unless the operation asked for strides */
} rapt_gradient;

typedef struct rapt_op rapt_op;

/* One call of an operation. shape() sees inputs without looking at data, forward() fills out, backward() fills din. */
typedef struct rapt_call {
    rapt_ctx *ctx;
    const rapt_op *op;
    const void *attrs; /* the operation's options, op->attrs_bytes of them */
    int inputs;
    const rapt_array *in; /* [inputs] */
    rapt_array out;       /* shape() sets type, ndim and shape; always contiguous, views apart */
    int64_t view_offset;  /* views only: shape() sets it, in elements from in[0]'s first, and out.stride */
    size_t saved_bytes[RAPT_MAX_SAVED]; /* shape() asks */
    void *saved[RAPT_MAX_SAVED];        /* forward() fills, backward() reads */
    const void *dout;                   /* backward: the gradient of out, contiguous */
    const rapt_gradient *din;           /* backward: [inputs] */
    bool recorded;                      /* forward: backward may follow */
    void *scratch;                      /* the engine's own */
} rapt_call;

/* How the engine prepares a call. */
typedef enum rapt_op_flags {
    RAPT_OP_BROADCAST = 1,   /* the first two or three inputs are broadcast as in NumPy: forward and backward see all of
                                them with out's shape (and strides, some 0); gradients are summed back by the engine */
    RAPT_OP_STRIDED = 2,     /* takes inputs, and places gradients, with any strides */
    RAPT_OP_VIEW = 4,        /* out shares in[0]'s storage; shape() is all there is */
    RAPT_OP_NO_GRADIENT = 8, /* not differentiable: out never has a gradient */
    RAPT_OP_MIXED = 16       /* floating inputs may differ in type */
} rapt_op_flags;

typedef rapt_status rapt_op_function(rapt_call *call);

/* One input of a sample. With neither values nor bounds: normally distributed. */
typedef struct rapt_sample_input {
    int ndim;
    int64_t shape[RAPT_MAX_DIMS];
    rapt_type type;       /* RAPT_F32 stands for the type under test: each sample is run in f32 and in f64 */
    double low, high;     /* uniform between them, if they differ */
    const double *values; /* all elements, row-major, if not NULL */
    bool absent;          /* an optional input that is not given */
} rapt_sample_input;

typedef struct rapt_sample {
    int inputs;
    rapt_sample_input in[8];
    const void *attrs;
    const char *error; /* NULL: must work and pass the gradient check; otherwise the exact message it must give */
} rapt_sample;

/* An operation. Those of the library and a user's own are the same kind of record. */
struct rapt_op {
    const char *name;
    const char *doc; /* one line: the formula */
    unsigned flags;  /* rapt_op_flags */
    int min_inputs;  /* those that must be given */
    int max_inputs;  /* 0: min_inputs; -1: any number */
    size_t attrs_bytes;
    uint32_t unread_inputs;  /* bit i: backward never reads the elements of input i, so they may die early */
    bool output_unread;      /* backward never reads out's elements */
    uint32_t passes;         /* bit i: input i's gradient is out's gradient as it is (summed back if broadcast); the
                                engine passes it on, backward() is not asked for it */
    rapt_op_function *shape; /* checks inputs and attrs; sets out's type, ndim, shape; may ask for saved buffers */
    rapt_op_function *forward[2];  /* [RAPT_F32], [RAPT_F64]: by the type of the first floating input, else [0] */
    rapt_op_function *backward[2]; /* for every input with din[i].data */
    const rapt_sample *samples;
    int samples_count;
};

/* Runs op on tensors (NULL: absent optional input) and records it if a gradient can flow. attrs are copied. */
RAPT_API rapt_tensor *rapt_apply(const rapt_op *op, const void *attrs, int inputs, rapt_tensor *const *in);

/* For shape(): */
RAPT_API rapt_status rapt_out_like(rapt_call *call, int input); /* out = type and shape of that input */
RAPT_API rapt_status rapt_out(rapt_call *call, rapt_type type, int ndim, const int64_t *shape);
RAPT_API rapt_status rapt_out_broadcast(rapt_call *call); /* for RAPT_OP_BROADCAST, over all inputs */
/* Fails with "NAME: …". */
RAPT_API rapt_status rapt_reject(rapt_call *call, rapt_status status, const char *format, ...) RAPT_PRINTF(3, 4);
/* The axis as 0 … ndim-1, negative ones counted from the end; rejects others and returns -1. */
RAPT_API int rapt_axis(rapt_call *call, int64_t axis, int ndim);

typedef struct rapt_text {
    char text[192];
} rapt_text;

RAPT_API rapt_text rapt_shape_text(const rapt_array *array); /* "[2,3]", for messages */

/* For forward() and backward(): memory that lives until the call returns, 64-byte aligned, not cleared. NULL when out
 * of memory, with the error set. Not to be called inside rapt_parallel(). */
RAPT_API void *rapt_scratch(rapt_call *call, size_t bytes);

typedef struct rapt_gradcheck_report {
    int checked; /* samples and directions tried */
    int failures;
    double worst;      /* the largest relative error of a gradient that passed */
    char message[512]; /* the first failure, "" if none */
} rapt_gradcheck_report;

/* Checks a record: it has a name, doc, samples, shape, forward and, unless declared not differentiable, backward; each
 * good sample's gradients, in double, against finite differences along random directions, with gradients stored and
 * with gradients added to a pre-filled buffer; f32 against f64; what backward claims not to read is poisoned with NaN;
 * each bad sample gives exactly its message. Makes its own contexts. report may be NULL. RAPT_OK or
 * RAPT_ERROR_NUMBER. */
RAPT_API rapt_status rapt_gradcheck(const rapt_op *op, rapt_gradcheck_report *report);

/* The same for any composition: f is called again and again with the same inputs slightly moved, and must return one
 * f64 tensor. inputs are f64 leaves; those that require a gradient are checked. */
RAPT_API rapt_status rapt_gradcheck_function(rapt_tensor *(*f)(void *user, rapt_tensor *const *inputs), void *user,
                                             int inputs, rapt_tensor *const *in, rapt_gradcheck_report *report);

/* ---- parameters --------------------------------------------------------------------------------------------- */

typedef enum rapt_init_kind { RAPT_INIT_ZEROS = 0, RAPT_INIT_ONES, RAPT_INIT_NORMAL, RAPT_INIT_UNIFORM } rapt_init_kind;

typedef struct rapt_init {
    rapt_init_kind kind;
    double scale; /* normal: standard deviation; uniform: between -scale and scale */
} rapt_init;

/* A model's parameters by name. The root owns them, and the memory of its layers; scopes are prefixes of names. */
RAPT_API rapt_params *rapt_params_new(rapt_ctx *ctx, rapt_type type); /* a root; f32 or f64 */
RAPT_API void rapt_params_free(rapt_params *root);                    /* or with the context */
/* Names made through the result start with "parent's prefix" + name + "."; printf-like. Lives as long as the root. */
RAPT_API rapt_params *rapt_params_scope(rapt_params *parent, const char *format, ...) RAPT_PRINTF(2, 3);
/* Zeroed memory that lives as long as the root: for layers. */
RAPT_API void *rapt_params_alloc(rapt_params *params, size_t bytes);

/* A new parameter; it wants a gradient. Borrowed: the root owns it. A name twice is an error. */
RAPT_API rapt_tensor *rapt_param(rapt_params *params, const char *name, int ndim, const int64_t *shape, rapt_init init);
/* A second name for an existing parameter: loading accepts either, saving, stepping and counting see one. */
RAPT_API rapt_status rapt_param_alias(rapt_params *params, const char *alias, rapt_tensor *parameter);

RAPT_API rapt_ctx *rapt_params_ctx(const rapt_params *params);
RAPT_API rapt_type rapt_params_type(const rapt_params *params);
RAPT_API int64_t rapt_params_count(const rapt_params *params);                       /* tensors; a shared one once */
RAPT_API int64_t rapt_params_elements(const rapt_params *params);                    /* numbers in them */
RAPT_API rapt_tensor *rapt_params_get(const rapt_params *params, int64_t i);         /* in order of creation */
RAPT_API const char *rapt_params_name(const rapt_params *params, int64_t i);         /* full name */
RAPT_API rapt_tensor *rapt_params_find(const rapt_params *params, const char *name); /* NULL if there is none */
RAPT_API void rapt_params_clear_grad(rapt_params *params);
/* Multiplies every gradient; with 1 / (the window's count of valid tokens) after summed losses this is gradient
 * accumulation. */
RAPT_API rapt_status rapt_params_scale_grad(rapt_params *params, double factor);

/* Writes all parameters under their names, or reads them (see rapt_safetensors_open(), also for the path): every name
 * must be there with its shape, nothing may be left over; the error lists what differs. Every value must be finite.
 * Names that start with one of the NULL-terminated ignored prefixes may be left over, or be missing: those parameters
 * keep their values. A failed load leaves the parameters as they were. All is checked, and then read where it belongs:
 * no second copy of the weights exists at any time. Only what happens to the file in between can fail later, and leaves
 * what was read until then. */
RAPT_API rapt_status rapt_params_save(rapt_params *params, const char *path);
RAPT_API rapt_status rapt_params_load(rapt_params *params, const char *path, const char *const *ignored);
RAPT_API rapt_status rapt_params_load_from(rapt_params *params, rapt_safetensors *file, const char *const *ignored);

/* ---- files -------------------------------------------------------------------------------------------------- */

/* Files are read, never mapped: the system ends a process that looks at a place of a mapped file that has been cut off
 * meanwhile, and no check beforehand can rule that out. What is asked for goes from the system's cache straight to where
 * it is wanted, so that nothing is in this process's memory twice. */

/* A whole file, with a zero byte after it; *bytes, which may be NULL, is its length. Freed with rapt_object_free(), or
 * with the context. NULL on error. A pipe is read to its end, once it has a writer. */
RAPT_API char *rapt_file_read(rapt_ctx *ctx, const char *path, int64_t *bytes);
/* Writes a file beside it, flushes that to the disk and renames it: the old file or the new one, always whole. */
RAPT_API rapt_status rapt_file_write(rapt_ctx *ctx, const char *path, const void *data, int64_t bytes);
RAPT_API rapt_status rapt_directory_make(rapt_ctx *ctx, const char *path); /* and its parents; fine if it exists */

/* JSON (RFC 8259), read whole: exact, at most 64 deep, independent of the locale. origin names the text in errors:
 * "ORIGIN: line L, column C: …". The same name twice in an object, a number beyond double and half a surrogate pair are
 * errors too. */
typedef enum rapt_json_kind {
    RAPT_JSON_NULL = 0,
    RAPT_JSON_BOOL,
    RAPT_JSON_NUMBER,
    RAPT_JSON_STRING,
    RAPT_JSON_ARRAY,
    RAPT_JSON_OBJECT
} rapt_json_kind;

RAPT_API rapt_json *rapt_json_parse(rapt_ctx *ctx, const char *text, int64_t bytes, const char *origin);
RAPT_API void rapt_json_free(rapt_json *root);                  /* of what parse returned; or with the context */
RAPT_API rapt_json_kind rapt_json_type(const rapt_json *value); /* NULL value: RAPT_JSON_NULL */
RAPT_API int64_t rapt_json_length(const rapt_json *value);      /* of a string (bytes), array or object; else 0 */
RAPT_API const rapt_json *rapt_json_item(const rapt_json *array_or_object, int64_t i); /* NULL outside */
RAPT_API const char *rapt_json_key(const rapt_json *object, int64_t i);                /* NULL outside */
RAPT_API const rapt_json *rapt_json_get(const rapt_json *object, const char *key);     /* NULL if absent */
RAPT_API const char *rapt_json_string(const rapt_json *value); /* UTF-8; may hold zero bytes; NULL if no string */
RAPT_API double rapt_json_number(const rapt_json *value, double otherwise);
/* otherwise, unless value is a number without fraction that fits; one written with a point or an exponent is kept as a
 * double, and fits up to 2^53. */
RAPT_API int64_t rapt_json_integer(const rapt_json *value, int64_t otherwise);
RAPT_API bool rapt_json_bool(const rapt_json *value, bool otherwise);

/* Builds a JSON text, value by value; in an object a key goes before each value. indent is the number of spaces a
 * level, 0 for one line without any. A call out of place, text that isn't UTF-8 and numbers that JSON doesn't have
 * (NaN, infinity) are errors, and the text is then never completed. A NULL writer is fine everywhere. */
typedef struct rapt_json_writer rapt_json_writer;

RAPT_API rapt_json_writer *rapt_json_writer_new(rapt_ctx *ctx, int indent);
RAPT_API void rapt_json_writer_free(rapt_json_writer *writer); /* or with the context */
RAPT_API void rapt_json_begin_object(rapt_json_writer *writer);
RAPT_API void rapt_json_begin_array(rapt_json_writer *writer);
RAPT_API void rapt_json_end(rapt_json_writer *writer); /* of the innermost object or array */
RAPT_API void rapt_json_put_key(rapt_json_writer *writer, const char *key);
RAPT_API void rapt_json_put_string(rapt_json_writer *writer, const char *utf8, int64_t bytes); /* -1: up to the zero */
RAPT_API void rapt_json_put_integer(rapt_json_writer *writer, int64_t value);
/* In as few digits as give the same double when read, with a point or an exponent: 0.1, 1.0, 1e-05. */
RAPT_API void rapt_json_put_number(rapt_json_writer *writer, double value);
RAPT_API void rapt_json_put_bool(rapt_json_writer *writer, bool value);
RAPT_API void rapt_json_put_null(rapt_json_writer *writer);
/* The whole text, with a zero byte after it; lives as long as the writer. NULL, with an error, if it isn't complete. */
RAPT_API const char *rapt_json_text(rapt_json_writer *writer, int64_t *bytes);

/* safetensors (huggingface/safetensors, README "Format"): F64 F32 F16 BF16 I64 I32 BOOL tensors and a string map. Any
 * malformed file is an error that says what and where; no size in it is believed before it is checked against the
 * file's own. An open file is read tensor by tensor as they are asked for; what replaces it meanwhile is not seen.
 *
 * A path that ends in ".json" is the index of a model in several files (model.safetensors.index.json): they are opened
 * together and are like one. A file that is missing, and a tensor that isn't in the one file that the index gives for
 * it, are errors. */
RAPT_API rapt_safetensors *rapt_safetensors_open(rapt_ctx *ctx, const char *path);
/* The same from memory, which must stay as it is until close. */
RAPT_API rapt_safetensors *rapt_safetensors_parse(rapt_ctx *ctx, const void *bytes, int64_t size, const char *origin);
RAPT_API void rapt_safetensors_close(rapt_safetensors *file); /* or with the context */
RAPT_API int64_t rapt_safetensors_count(const rapt_safetensors *file);
RAPT_API const char *rapt_safetensors_name(const rapt_safetensors *file, int64_t i);
RAPT_API bool rapt_safetensors_has(const rapt_safetensors *file, const char *name);
/* A copy of the tensor, in the current scope; F16 and BF16 are widened to f32. A type that rapt hasn't (U8, F8_E4M3, …)
 * may be in the file, but asking for it is an error, as is a name that isn't there. */
RAPT_API rapt_tensor *rapt_safetensors_get(rapt_safetensors *file, const char *name);
/* Its type and shape alone: of array everything but the data. */
RAPT_API rapt_status rapt_safetensors_describe(const rapt_safetensors *file, const char *name, rapt_array *array);
/* Overwrites a contiguous tensor of the same shape, and of the same type or floating as this. */
RAPT_API rapt_status rapt_safetensors_read(const rapt_safetensors *file, const char *name, rapt_tensor *into);
RAPT_API const char *rapt_safetensors_metadata(const rapt_safetensors *file, const char *key); /* NULL if absent */

typedef struct rapt_named_tensor {
    const char *name;
    const rapt_tensor *tensor;
} rapt_named_tensor;

/* metadata: key, value, key, value, …, NULL; or NULL. Written as rapt_file_write() does, wide types first, then by
 * name, as the reference implementation does. */
RAPT_API rapt_status rapt_safetensors_save(rapt_ctx *ctx, const char *path, int64_t count,
                                           const rapt_named_tensor *tensors, const char *const *metadata);

typedef enum rapt_narrowing {
    RAPT_NARROW_NOTHING = 0,
    RAPT_NARROW_F16, /* largest number 65504 */
    RAPT_NARROW_BF16 /* the range of f32, 8 bits of precision */
} rapt_narrowing;

/* The same, with floating tensors in 16 bits: to the nearest, ties to even, infinity beyond the largest number. */
RAPT_API rapt_status rapt_safetensors_save_narrowed(rapt_ctx *ctx, const char *path, int64_t count,
                                                    const rapt_named_tensor *tensors, const char *const *metadata,
                                                    rapt_narrowing narrowing);
RAPT_API rapt_status rapt_params_save_narrowed(rapt_params *params, const char *path, rapt_narrowing narrowing);

#ifdef __cplusplus
}
#endif
#endif
