/* What reading and writing JSON share. */
#ifndef RAPT_JSON_H
#define RAPT_JSON_H

#include "core/core.h"

#include <locale.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif

enum { RAPT__JSON_DEPTH = 64 };

/* Length, 1 … 4, of the UTF-8 character (RFC 3629) that text begins with; 0 if it begins with none. */
int rapt__utf8_length(const char *text, const char *end);

/* Numbers read and printed by this thread have a point, whatever the program's locale, until rapt__c_locale_end().
 * False, with the context's error set, when out of memory. */
typedef struct rapt__c_locale {
    locale_t c, before;
} rapt__c_locale;

bool rapt__c_locale_begin(rapt_ctx *ctx, rapt__c_locale *locale);
void rapt__c_locale_end(rapt__c_locale *locale);

#endif
