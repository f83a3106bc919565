import "./binary.test";
import "./costUri.test";
import "./grammar.test";
import "./manifest.test";
import "./restarts.test";
