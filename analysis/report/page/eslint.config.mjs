// The scripts of the pages are checked with the tools of the VS Code extension.
import { createRequire } from "node:module";

const tseslint = createRequire(new URL("../../../vscode-extension/package.json", import.meta.url))("typescript-eslint");

export default tseslint.config(
  { ignores: ["eslint.config.mjs", "test/"] },
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: {
      sourceType: "script",
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      // All scripts share one scope: what one declares another uses. The compiler knows both.
      "@typescript-eslint/no-unused-vars": ["error", { vars: "local" }],
      "no-undef": "off",
      "no-redeclare": "off",
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true, allowBoolean: true }],
      "no-new": "off",
      eqeqeq: "error",
      "no-implicit-globals": "off",
    },
  },
);
