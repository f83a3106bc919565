package server

import _ "dmir/compile/target/all"
