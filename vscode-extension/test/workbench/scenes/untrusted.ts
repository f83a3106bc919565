import * as assert from "node:assert/strict";
import type { Scene } from "../scene";
import { traced } from "./python";
import type { Workbench } from "../workbench";

/** A workspace that is not trusted. */
export const untrusted: Scene[] = [
  {
    name: "without trust: costs are shown, nothing runs until trust is given",
    settings: () => ({ "dmir.run.device": "reference" }),
    file: "ffn.dmir",
    play: async (wb) => {
      await refusedRun(wb);
      await wb.screenshot("untrusted");
      await giveTrust(wb);
      await wb.lens(/^Run/).first().click();
      await wb.notifications(/ffn.*\d\s?(ns|µs|ms|s)\b/s).first().waitFor();
    },
  },
  {
    name: "without trust: a Python file has its costs, and its trace names no command that runs",
    settings: () => ({}),
    file: "model.py",
    prepare: traced,
    play: async (wb) => {
      await wb.lens(/^Trace again/).first().click();
      await wb.notifications(/step was not traced: the workspace is not trusted/).first().waitFor();
    },
  },
  {
    name: "without trust: the workspace cannot name the program to start",
    settings: () => ({ "dmir.path": "/nowhere/dmir" }),
    file: "ffn.dmir",
    play: async (wb) => {
      await refusedRun(wb);
      assert.equal(await wb.notifications(/nowhere/).count(), 0);
      await giveTrust(wb);
      await wb.notifications(/dmir was not found \(tried \/nowhere\/dmir\)/).waitFor();
    },
  },
];

async function refusedRun(wb: Workbench): Promise<void> {
  await wb.squiggles().first().waitFor();
  await wb.lens(/^Run/).first().click();
  await wb.notifications(/only in a trusted workspace/).waitFor();
}

/** Follows the message's button. */
async function giveTrust(wb: Workbench): Promise<void> {
  await wb.page.getByRole("button", { name: "Manage Workspace Trust" }).click();
  await wb.page.locator(".workspace-trust-editor").getByRole("button", { name: /^Trust$/ }).click();
  await wb.page.locator(".workspace-trust-editor", { hasText: "You trust this folder" }).waitFor();
  await wb.page.locator(".tab", { hasText: "ffn.dmir" }).first().click();
}
