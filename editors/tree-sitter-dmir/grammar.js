// MLIR's text for editors: ops with results, names, operands and regions, in any dialect. Where an op ends and whether a
// brace opens a region depend on the tokens that follow, as in dmir's own parser (syntax/parse/start.go). src/scanner.c
// decides both, so the grammar below has no conflicts. The custom form of an op is a flat list of items, since each dialect
// defines its own.
//
// src/facts.json, the queries and this grammar's words come from dmir's registry: `go generate ./editors/...`.
const facts = require('./src/facts.json');

module.exports = grammar({
  name: 'dmir',

  extras: $ => [/\s/, /\uFEFF/, $.comment],
  word: $ => $.identifier,

  // The order is that of enum TokenType in src/scanner.c.
  externals: $ => [
    $.result,
    $.value,
    $.op_name,
    $.generic_name,
    $.block_label,
    $.successor,
    $.alias_name,
    $._region_open,
    $._less,
    $._after_name,
    $._after_op,
  ],

  rules: {
    source_file: $ => repeat($._statement),

    // _after_op never matches, like _after_name below: it tells the scanner that an op precedes. The scanner then decides as it
    // does inside the op, so that an op that is reused after an edit is reopened if the following text continues it.
    _statement: $ => seq(choice($.alias_definition, $.operation, $.resources), optional($._after_op)),

    alias_definition: $ => seq(field('name', $.alias_name), '=', repeat1($._item)),

    operation: $ => seq(
      optional(field('results', $.results)),
      field('name', choice($.op_name, alias($.generic_name, $.op_name))),
      optional($._after_name), // never matches: tells the scanner that the name precedes
      repeat(choice($._item, $.region)),
    ),

    results: $ => seq($._result, repeat(seq(',', $._result)), '='),
    _result: $ => seq($.result, optional(seq(':', $.integer))),

    region: $ => seq(alias($._region_open, '{'), repeat($._statement), repeat($.block), '}'),

    block: $ => seq(
      field('label', $.block_label),
      optional(field('arguments', $.parenthesized)),
      ':',
      repeat($._statement),
    ),

    // Inside "<" a ">" closes the bracket; elsewhere it is a comparison operator.
    _item: $ => choice($._inner, '>'),
    _inner: $ => choice(
      $.assignment,
      $._atom,
      $.successor,
      ',', ':', '::', '->', '=', '==', '>=', '<=',
      alias($._less, '<'),
      $.operator,
    ),

    // dim = 1, order = [1, 0], dm.max_moved = "1.2 GB"
    assignment: $ => prec.right(1, seq(
      field('name', alias(choice($.identifier, $.string, $.builtin_type, ...facts.shaped), $.attribute_name)),
      '=',
      optional(field('value', choice($._atom, $.successor))),
    )),

    _atom: $ => choice(
      $.value,
      $.symbol,
      $.attribute_alias,
      $.type_alias,
      $.type,
      $.builtin_type,
      $.string,
      $.float,
      $.integer,
      $.dimensions,
      $.boolean,
      $.identifier,
      alias(choice(...facts.shaped), $.identifier),
      $.parenthesized,
      $.list,
      $.dictionary,
      $.arguments,
    ),

    type: $ => prec(2, seq(field('name', alias(choice(...facts.shaped), $.type_name)), $.arguments)),

    parenthesized: $ => seq('(', repeat(choice($._item, $.region)), ')'),
    list: $ => seq('[', repeat(choice($._item, $.region)), ']'),
    dictionary: $ => seq('{', repeat($._item), '}'),
    arguments: $ => seq('<', repeat($._inner), '>'),

    symbol: _ => token(seq('@', choice(/[A-Za-z0-9_$.]+/, /"([^"\\\n]|\\.)*"/))),
    attribute_alias: _ => /#[A-Za-z0-9_][A-Za-z0-9_$.]*/,
    type_alias: _ => /![A-Za-z0-9_][A-Za-z0-9_$.]*/,

    builtin_type: _ => token(prec(1, choice(...facts.elements, ...facts.types, new RegExp(facts.floats), /[su]?i[0-9]+/))),
    boolean: _ => choice('true', 'false'),
    identifier: _ => /[A-Za-z_][A-Za-z0-9_$.]*/,

    dimensions: _ => /([0-9]+x|\?x|\*x)+/,
    integer: _ => /-?([0-9]+|0x[0-9A-Fa-f]+)/,
    float: _ => /-?[0-9]+\.[0-9]*([eE][+-]?[0-9]+)?/,
    string: _ => /"([^"\\\n]|\\.)*"/,

    operator: _ => /[-+*\/?|&~!#^;.\\'`$@%]|[^\x00-\x7F]/,

    comment: _ => token(seq('//', /[^\n\r]*/)),
    resources: _ => token(seq('{-#', repeat(choice(/[^#"]/, /"([^"\\\n]|\\.)*"/, /#[^-]/, /#-[^}]/)), '#-}')),
  },
});
