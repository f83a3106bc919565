" MLIR's text and the ops of the data-movement dialect.
if exists('b:current_syntax')
  finish
endif

syntax match dmirOp /\<[A-Za-z_]\w*\.[A-Za-z_][A-Za-z0-9_.$]*/
syntax match dmirStructure /\<\%(dm\.\%(kernel\|map\|while\|if\|yield\)\|func\.func\|func\.call\|func\|module\|return\)\>/
syntax keyword dmirModifier public private nested
syntax match dmirType /\<\%(index\|none\|bf16\|tf32\|f\d\+\%(E\d\+M\d\+\w*\)\?\|[su]\?i\d\+\)\>/
syntax match dmirType /x\@1<=\%(index\|bf16\|f\d\+\%(E\d\+M\d\+\w*\)\?\|[su]\?i\d\+\)\>/
syntax match dmirType /\<\%(tensor\|memref\|vector\|complex\|tuple\)\ze</
syntax match dmirType /![A-Za-z_][A-Za-z0-9_.$]*/
syntax match dmirValue /%[A-Za-z0-9_$.-]\+\%([:#]\d\+\)\?/
syntax match dmirSymbol /@[A-Za-z0-9_$.-]\+/
syntax match dmirBlock /\^[A-Za-z0-9_$.-]\+/
syntax match dmirAttribute /#[A-Za-z_][A-Za-z0-9_.$-]*/
syntax keyword dmirKeyword affine_map affine_set dense dense_resource array loc attributes
syntax keyword dmirConstant true false unit
syntax match dmirNumber /\<-\?\d\+\%(\.\d*\%([eE][+-]\?\d\+\)\?\)\?\>/
syntax region dmirString start=/"/ skip=/\\\\\|\\"/ end=/"/ oneline
syntax match dmirComment /\/\/.*$/ contains=dmirDirective,@Spell
syntax match dmirDirective /dmir: ignore\%(\[[^]]*\]\)\?/ contained

highlight default link dmirOp Function
highlight default link dmirStructure Statement
highlight default link dmirModifier StorageClass
highlight default link dmirType Type
highlight default link dmirValue Identifier
highlight default link dmirSymbol Function
highlight default link dmirBlock Label
highlight default link dmirAttribute PreProc
highlight default link dmirKeyword Keyword
highlight default link dmirConstant Boolean
highlight default link dmirNumber Number
highlight default link dmirString String
highlight default link dmirComment Comment
highlight default link dmirDirective SpecialComment

let b:current_syntax = 'dmir'
