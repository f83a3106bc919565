// MLIR's text as an editor needs it: ops with their results, names, operands and regions, in any dialect. Where an op ends
// and which brace opens a region depends on what stands behind, as it does for dmir itself (syntax/parse/start.go); these
// questions are answered by src/scanner.c, so that the grammar below has no conflicts. What an op's own form says is kept as
// a flat list of items: dialects write their ops as they like.
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

    // _after_op is never there, like _after_name below: it tells the scanner that an op stands before. There it answers as it
    // does within the op, so that an op that is kept from before an edit is opened again where the text behind goes on with it.
    _statement: $ => seq(choice($.alias_definition, $.operation, $.resources), optional($._after_op)),

    alias_definition: $ => seq(field('name', $.alias_name), '=', repeat1($._item)),

    operation: $ => seq(
      optional(field('results', $.results)),
      field('name', choice($.op_name, alias($.generic_name, $.op_name))),
      optional($._after_name), // never there: tells the scanner that it is asked behind the name
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

    // In brackets of its own kind a ">" closes; elsewhere it is the operator of a comparison.
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
