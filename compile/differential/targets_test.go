package differential

import _ "dmir/compile/target/all"
