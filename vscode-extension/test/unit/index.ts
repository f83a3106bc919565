import "./binary.test";
import "./costUri.test";
import "./grammar.test";
import "./later.test";
import "./manifest.test";
import "./page.test";
import "./restarts.test";
import "./visible.test";
