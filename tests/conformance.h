/* What an operation of the conformance runner sees of a case file. */
#ifndef RAPT_TESTS_CONFORMANCE_H
#define RAPT_TESTS_CONFORMANCE_H

#include <rapt/nn.h>
#include <rapt/optim.h>

typedef struct conformance_tensor {
    const char *name; /* without "in.", "out." */
    rapt_tensor *tensor;
} conformance_tensor;

/* Errors are the context's: a function that finds one sets it and goes on with nil. */
typedef struct conformance_case {
    rapt_ctx *ctx;
    rapt_safetensors *file;
    rapt_json *attrs;
    rapt_type type; /* of every floating tensor */
    int64_t input_count, output_count;
    conformance_tensor *inputs, *outputs; /* room for as many as the file has tensors */
} conformance_case;

typedef void conformance_op(conformance_case *c);

bool conformance_knows(const char *op);
/* Runs the operation, which must be known, and registers its outputs. */
void conformance_run(conformance_case *c, const char *op);

/* The tensor in.NAME: a leaf that wants a gradient if it is floating. */
rapt_tensor *conformance_input(conformance_case *c, const char *name);
rapt_tensor *conformance_optional_input(conformance_case *c, const char *name); /* NULL if absent */
/* Copies every in.p.NAME into the parameter NAME; each must meet its partner. */
void conformance_parameters(conformance_case *c, rapt_params *params);
void conformance_output(conformance_case *c, const char *name, rapt_tensor *tensor);

/* Attributes; absent ones and null give `otherwise`, one of another kind is an error. */
int64_t conformance_integer(conformance_case *c, const char *key, int64_t otherwise);
double conformance_number(conformance_case *c, const char *key, double otherwise);
bool conformance_bool(conformance_case *c, const char *key, bool otherwise);
const char *conformance_string(conformance_case *c, const char *key, const char *otherwise);
/* A list of integers, at most RAPT_MAX_DIMS; returns how many. */
int conformance_integers(conformance_case *c, const char *key, int64_t *values);

#endif
