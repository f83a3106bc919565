// Decisions that the grammar cannot make: whether a name begins an op or continues the previous one, whether a value is
// defined or used, whether a brace opens a region or a dictionary. As in dmir's own parser (syntax/parse/start.go), they depend
// on the text that follows and on whether the token is the first of its line. The scanner keeps no state between tokens.
#include "tree_sitter/parser.h"

enum TokenType {
  RESULT,       // %a in "%a, %b:2 = dm.op"
  VALUE,        // any other %a
  OP_NAME,      // dm.add, return
  GENERIC_NAME, // "dm.add" before its operands
  BLOCK_LABEL,  // ^bb0 where the block begins
  SUCCESSOR,    // any other ^bb0
  ALIAS_NAME,   // #map or !t before "="
  REGION_OPEN,  // a brace before ops
  LESS,         // "<" with white space around it, an operator
  AFTER_NAME,   // never matches: valid after the name of an op
  AFTER_OP,     // never matches: valid after a complete op
};

// The limit of look-ahead: for longer lists the scanner assumes the usual case.
enum { LOOK = 4096 };

typedef struct {
  TSLexer *lexer;
  int32_t left; // characters of look-ahead left
} Look;

static bool is_space(int32_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
static bool is_digit(int32_t c) { return c >= '0' && c <= '9'; }
static bool is_letter(int32_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool is_word(int32_t c) { return is_letter(c) || is_digit(c) || c == '$' || c == '.'; }

static int32_t peek(const Look *l) { return l->left > 0 ? l->lexer->lookahead : 0; }
static void next(Look *l) {
  l->left--;
  l->lexer->advance(l->lexer, false);
}

// blanks skips white space and comments of any length, and reports whether a line ended.
static bool blanks(Look *l) {
  TSLexer *lexer = l->lexer;
  bool line = false, comment = false;
  for (; is_space(lexer->lookahead) || lexer->lookahead == '/' || (comment && !lexer->eof(lexer)); lexer->advance(lexer, false)) {
    bool end = lexer->lookahead == '\n' || lexer->lookahead == '\r';
    line = line || end;
    comment = !end && (comment || lexer->lookahead == '/');
  }
  return line;
}

// The properties of a name that decisions depend on.
typedef struct {
  bool dotted;
  char text[12]; // its beginning
  char last[12]; // the beginning of what follows the last dot
} Name;

static bool same(const char *a, const char *b) {
  while (*a && *a == *b) a++, b++;
  return *a == *b;
}

static Name name(Look *l) {
  Name n = {0};
  unsigned all = 0, last = 0;
  for (; is_word(peek(l)); next(l)) {
    char c = (char)peek(l);
    if (all < sizeof n.text - 1) n.text[all++] = c;
    if (c == '.') {
      n.dotted = true;
      for (last = 0; last < sizeof n.last; last++) n.last[last] = 0;
      last = 0;
    } else if (last < sizeof n.last - 1) {
      n.last[last++] = c;
    }
  }
  return n;
}

// suffix skips the name after a % or ^. The token ends before an arrow, that is, before a "-" that begins one.
static void suffix(Look *l) {
  if (is_digit(peek(l))) {
    while (is_digit(peek(l))) next(l);
    l->lexer->mark_end(l->lexer);
    return;
  }
  for (;;) {
    l->lexer->mark_end(l->lexer);
    bool dash = peek(l) == '-';
    if (!dash && !is_word(peek(l))) return;
    next(l);
    if (dash && peek(l) == '>') return;
  }
}

// string skips a string and reports whether it could be the name of an op.
static bool string(Look *l) {
  bool dotted = false, plain = true;
  next(l);
  while (peek(l) != '"' && peek(l) != 0 && peek(l) != '\n') {
    if (peek(l) == '\\') next(l);
    dotted = dotted || peek(l) == '.';
    plain = plain && (is_word(peek(l)) || peek(l) == '-');
    next(l);
  }
  if (peek(l) == '"') next(l);
  return dotted && plain;
}

// equals skips a "=" that does not begin "==".
static bool equals(Look *l) {
  if (peek(l) != '=') return false;
  next(l);
  return peek(l) != '=';
}

// builtin reports whether a word without a dot begins an op; l is after the word and white space.
static bool builtin(const Look *l, const Name *n) {
  int32_t c = peek(l);
  if (same(n->text, "return")) return c != ',' && c != '=';
  if (same(n->text, "call") || same(n->text, "func")) return c == '@';
  if (same(n->text, "module")) return c == '{' || c == '@' || c == 'a';
  return false;
}

// How certain it is that a list of values defines the results of an op.
typedef enum { NO, WEAK, STRONG } Sure;

// results checks whether "%a" is followed by the rest of "%a, %b:2 = op"; l is after the %a.
static Sure results(Look *l) {
  for (;;) {
    blanks(l);
    if (peek(l) == ':') {
      next(l);
      blanks(l);
      if (!is_digit(peek(l))) return NO;
      while (is_digit(peek(l))) next(l);
      blanks(l);
    }
    if (peek(l) == '=') {
      if (!equals(l)) return NO;
      blanks(l);
      if (peek(l) == '"') return STRONG;
      if (!is_letter(peek(l))) return NO;
      return name(l).dotted ? STRONG : WEAK;
    }
    if (peek(l) != ',') return NO;
    next(l);
    blanks(l);
    if (peek(l) != '%') return NO;
    next(l);
    while (is_word(peek(l)) || peek(l) == '-') next(l);
  }
}

// label checks whether a ^bb is followed by the rest of "^bb:" or "^bb(…):".
static bool label(Look *l) {
  blanks(l);
  if (peek(l) == ':') return true;
  if (peek(l) != '(') return false;
  int depth = 0;
  do {
    if (peek(l) == '"') {
      string(l);
      continue;
    }
    if (peek(l) == '(') depth++;
    if (peek(l) == ')') depth--;
    if (peek(l) == 0) return l->left <= 0;
    next(l);
  } while (depth > 0);
  blanks(l);
  return peek(l) == ':';
}

static bool ends_with(const char *s, const char *tail) {
  unsigned n = 0, m = 0;
  while (s[n]) n++;
  while (tail[m]) m++;
  return n >= m && same(s + n - m, tail);
}

// terminator reports whether a single name in braces is an op that ends a block rather than a unit attribute.
static bool terminator(const Name *n) {
  static const char *const words[] = {"yield", "return", "terminator", "output", "done", "unreachable", "end"};
  for (unsigned i = 0; i < sizeof words / sizeof *words; i++) {
    if (ends_with(n->last, words[i])) return true;
  }
  return false;
}

// holds_ops checks whether the text after a brace begins with an op or a label.
static bool holds_ops(Look *l) {
  bool first = blanks(l);
  switch (peek(l)) {
  case '}':
    return first;
  case '^':
    next(l);
    while (is_word(peek(l)) || peek(l) == '-') next(l);
    blanks(l);
    return peek(l) == ':' || peek(l) == '(';
  case '%':
    next(l);
    while (is_word(peek(l)) || peek(l) == '-') next(l);
    return results(l) != NO;
  case '"':
    string(l);
    blanks(l);
    return peek(l) == '(';
  }
  if (!is_letter(peek(l))) return false;
  Name n = name(l);
  bool line = blanks(l);
  if (peek(l) == '=' || peek(l) == ',') return false;
  if (peek(l) == '}') return same(n.text, "return") || (n.dotted && (terminator(&n) || (first && line)));
  return n.dotted || builtin(l, &n);
}

static bool found(TSLexer *lexer, enum TokenType t) {
  lexer->result_symbol = t;
  return true;
}

static bool scan_value(Look *l, const bool *valid, bool inside, bool first) {
  TSLexer *lexer = l->lexer;
  next(l);
  suffix(l);
  if (valid[RESULT]) {
    if (!inside) return found(lexer, RESULT);
    Look ahead = *l;
    bool numbered = peek(&ahead) == '#';
    if (!numbered) {
      Sure sure = results(&ahead);
      if (sure == STRONG || (sure == WEAK && first)) return found(lexer, RESULT);
      return valid[VALUE] && found(lexer, VALUE);
    }
  }
  if (!valid[VALUE]) return false;
  if (peek(l) == '#') {
    next(l);
    if (is_digit(peek(l))) {
      while (is_digit(peek(l))) next(l);
      lexer->mark_end(lexer);
    }
  }
  return found(lexer, VALUE);
}

static bool scan_name(Look *l, bool inside, bool first) {
  Name n = name(l);
  l->lexer->mark_end(l->lexer);
  if (!inside) return found(l->lexer, OP_NAME);
  blanks(l);
  int32_t c = peek(l);
  bool begins = n.dotted ? (first ? c != '=' && c != ',' : c == '%' || c == '@' || c == '"') : first && builtin(l, &n);
  return begins && found(l->lexer, OP_NAME);
}

static bool scan_string(Look *l, bool inside, bool first, bool named) {
  bool dotted = string(l);
  l->lexer->mark_end(l->lexer);
  if (!inside) return found(l->lexer, GENERIC_NAME);
  blanks(l);
  return peek(l) == '(' && (first || (dotted && !named)) && found(l->lexer, GENERIC_NAME);
}

static bool scan_label(Look *l, const bool *valid, bool inside, bool first) {
  TSLexer *lexer = l->lexer;
  next(l);
  suffix(l);
  if (valid[BLOCK_LABEL] && (!inside || (first && label(l)))) return found(lexer, BLOCK_LABEL);
  return valid[SUCCESSOR] && found(lexer, SUCCESSOR);
}

static bool scan_alias(Look *l, bool inside, bool first) {
  next(l);
  if (!is_letter(peek(l)) && !is_digit(peek(l))) return false;
  while (is_word(peek(l))) next(l);
  l->lexer->mark_end(l->lexer);
  blanks(l);
  return (!inside || first) && equals(l) && found(l->lexer, ALIAS_NAME);
}

static bool scan_brace(Look *l) {
  next(l);
  l->lexer->mark_end(l->lexer);
  return peek(l) != '-' && holds_ops(l) && found(l->lexer, REGION_OPEN);
}

void *tree_sitter_dmir_external_scanner_create(void) { return NULL; }
void tree_sitter_dmir_external_scanner_destroy(void *payload) { (void)payload; }
unsigned tree_sitter_dmir_external_scanner_serialize(void *payload, char *buffer) {
  (void)payload, (void)buffer;
  return 0;
}
void tree_sitter_dmir_external_scanner_deserialize(void *payload, const char *buffer, unsigned length) {
  (void)payload, (void)buffer, (void)length;
}

bool tree_sitter_dmir_external_scanner_scan(void *payload, TSLexer *lexer, const bool *valid) {
  (void)payload;
  bool first = false, blank = false;
  for (; is_space(lexer->lookahead); lexer->advance(lexer, true)) {
    blank = true;
    first = first || lexer->lookahead == '\n' || lexer->lookahead == '\r';
  }
  bool inside = valid[LESS] || valid[AFTER_OP]; // among or after the items of an op, not where an op must begin
  Look l = {lexer, LOOK};
  switch (lexer->lookahead) {
  case '%':
    return (valid[RESULT] || valid[VALUE]) && scan_value(&l, valid, inside, first);
  case '"':
    return valid[GENERIC_NAME] && scan_string(&l, inside, first, valid[AFTER_NAME]);
  case '^':
    return (valid[BLOCK_LABEL] || valid[SUCCESSOR]) && scan_label(&l, valid, inside, first);
  case '#':
  case '!':
    return valid[ALIAS_NAME] && scan_alias(&l, inside, first);
  case '{':
    return valid[REGION_OPEN] && scan_brace(&l);
  case '<':
    if (!valid[LESS] || !blank) return false;
    next(&l);
    lexer->mark_end(lexer);
    return lexer->lookahead == ' ' && found(lexer, LESS);
  }
  return valid[OP_NAME] && is_letter(lexer->lookahead) && scan_name(&l, inside, first);
}
