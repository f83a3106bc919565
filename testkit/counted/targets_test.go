package counted

import _ "dmir/compile/target/all"
