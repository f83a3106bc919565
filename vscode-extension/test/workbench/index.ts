// Drives the real VS Code workbench: `node out/test/workbench.js host|scenes|story…`, with the environment of scripts/test-vscode.sh.
import { extensionHostLeg } from "./hostLeg";
import { scenesLeg, storyLeg } from "./legs";
import { launchBrowser } from "./workbench";

const legs = { host: extensionHostLeg, scenes: scenesLeg, story: storyLeg };

async function main(wanted: string[]): Promise<void> {
  const browser = await launchBrowser();
  try {
    for (const [name, leg] of Object.entries(legs)) {
      if (!wanted.includes(name)) continue;
      console.log(`${name}:`);
      await leg(browser);
    }
  } finally {
    await browser.close();
  }
}

main(process.argv.slice(2)).catch((err: unknown) => {
  console.error(err instanceof Error ? err.message : err);
  process.exitCode = 1;
});
