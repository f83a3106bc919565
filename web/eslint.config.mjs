// The pages are checked with the tools of the VS Code extension.
import { createRequire } from "node:module";

const tseslint = createRequire(new URL("../vscode-extension/package.json", import.meta.url))("typescript-eslint");

export default tseslint.config(
  { ignores: ["**/*.mjs"] },
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      "@typescript-eslint/consistent-type-imports": "error",
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true, allowBoolean: true }],
      eqeqeq: "error",
    },
  },
);
