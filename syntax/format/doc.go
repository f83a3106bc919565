// Package format lays out MLIR text. It changes white space only: the sequence
// of tokens, comments among them, is the same before and after, whatever the
// dialect. The layout is
//
//   - two blanks of indentation for each region, labels at the indentation of
//     their region's braces, one op on a line;
//   - the line breaks that the author put inside an op stay. Such a line is
//     indented by four blanks, or, inside brackets, aligned with the first token
//     behind the bracket, or, where the bracket ended its line, by two blanks
//     (four behind a parenthesis) more than the line of the bracket;
//   - one space where ops that dmir reads in full separate tokens, the author's
//     own spacing, without runs of blanks, in ops of other dialects;
//   - comments on lines of their own are indented like what follows them,
//     comments behind code stay there after one space;
//   - at most one blank line in a row, none inside the ends of a region, no
//     trailing blanks, one newline at the end. Line ends are "\n" unless all of
//     the file's are "\r\n". A byte order mark in front stays.
//
// Two texts are kept byte for byte: the body of a dialect's type or attribute
// (#d.a<…>, because its blanks are part of the value for tools that do not know
// the dialect), and what could not be parsed.
//
// All functions take time and space in proportion to their input.
package format
