/* One text for float and double. Files that include this are compiled twice by the build, the second time with
 * RAPT_DOUBLE defined:
 *     real        is float, then double
 *     REAL(name)  is name_f32, then name_f64
 * What must exist once beside the two (an operation's record, its public function) stands under #ifndef RAPT_DOUBLE. */
#ifndef RAPT_REAL_H
#define RAPT_REAL_H

#ifdef RAPT_DOUBLE
typedef double real;
#define REAL(name) name##_f64
#define RAPT_REAL  RAPT_F64
#else
typedef float real;
#define REAL(name) name##_f32
#define RAPT_REAL  RAPT_F32
#endif

#endif
