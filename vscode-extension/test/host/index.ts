// The suite that runs inside VS Code's extension host, against the extension and a real server.
import * as fs from "node:fs";
import Mocha from "mocha";
import { commandSuite } from "./commands";
import { languageSuite } from "./language";
import { panelSuite } from "./panels";
import { serverSuite } from "./server";
import { stableHLOSuite } from "./stablehlo";

/** Called by VS Code. Rejects if a test fails; the report is written to the file that DMIR_TEST_REPORT names. */
export async function run(): Promise<void> {
  const mocha = new Mocha({ ui: "bdd", timeout: 5 * 60_000 });
  mocha.suite.emit("pre-require", globalThis, "", mocha);
  languageSuite();
  commandSuite();
  panelSuite();
  stableHLOSuite();
  serverSuite();

  const lines: string[] = [];
  const failures = await new Promise<number>((done) => {
    const runner = mocha.run(done);
    runner.on("pass", (test) => lines.push(`  ok   ${test.fullTitle()}`));
    runner.on("fail", (test, err: Error) => lines.push(`  FAIL ${test.fullTitle()}\n${err.stack ?? err.message}`));
  });
  const report = process.env["DMIR_TEST_REPORT"];
  if (report !== undefined) fs.writeFileSync(report, lines.join("\n") + "\n");
  if (failures > 0) throw new Error(`${failures} of the tests in the extension host failed`);
}
