import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import type { Browser } from "playwright-core";
import { need, VSCode, workspace } from "./vscode";

/** Runs the extension-host suite in the real workbench; throws if it fails or does not report. */
export async function extensionHostLeg(browser: Browser): Promise<void> {
  const extension = path.resolve(__dirname, "../..");
  const folder = workspace({ "dmir.path": need("DMIR_BINARY"), "dmir.hints.position": "end" });
  const report = path.join(fs.mkdtempSync(path.join(os.tmpdir(), "dmir-report-")), "report.txt");
  const code = await VSCode.start({ trustEverything: true, env: { DMIR_TEST_REPORT: report } });
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    const exit = new Promise<number>((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(new Error("the extension host never reported"));
      }, 15 * 60_000);
      void page.exposeFunction("codeAutomationExit", (status: number) => {
        clearTimeout(timer);
        resolve(status);
      });
      void page.exposeFunction("codeAutomationLog", () => undefined);
    });
    await page.goto(
      code.address(folder, {
        extensionDevelopmentPath: extension,
        extensionTestsPath: path.join(extension, "out/test/host.js"),
      }),
    );
    const status = await exit;
    console.log(fs.existsSync(report) ? fs.readFileSync(report, "utf8") : "no report was written");
    if (status !== 0) throw new Error("the tests in the extension host failed");
  } finally {
    await context.close();
    await code.stop();
    fs.rmSync(folder, { recursive: true });
  }
}
