import * as assert from "node:assert/strict";
import * as fs from "node:fs";
import * as path from "node:path";
import * as onig from "vscode-oniguruma";
import * as textmate from "vscode-textmate";

const root = path.resolve(__dirname, "..", "..");

async function loadGrammar(scope: string, name: string): Promise<textmate.IGrammar> {
  const wasm = fs.readFileSync(path.join(root, "node_modules/vscode-oniguruma/release/onig.wasm"));
  await onig.loadWASM(wasm);
  const registry = new textmate.Registry({
    onigLib: Promise.resolve({
      createOnigScanner: (patterns) => new onig.OnigScanner(patterns),
      createOnigString: (text) => new onig.OnigString(text),
    }),
    loadGrammar: () => {
      const file = path.join(root, `syntaxes/${name}.tmLanguage.json`);
      return Promise.resolve(textmate.parseRawGrammar(fs.readFileSync(file, "utf8"), file));
    },
  });
  const grammar = await registry.loadGrammar(scope);
  assert.ok(grammar);
  return grammar;
}

/** The innermost scope of each piece of the text, one line or several. */
function scopes(grammar: textmate.IGrammar, text: string): Map<string, string> {
  const found = new Map<string, string>();
  let stack = textmate.INITIAL;
  for (const line of text.split("\n")) {
    const { tokens, ruleStack } = grammar.tokenizeLine(line, stack);
    stack = ruleStack;
    for (const token of tokens) {
      const piece = line.slice(token.startIndex, token.endIndex).trim();
      if (piece !== "") found.set(piece, token.scopes.at(-1) ?? "");
    }
  }
  return found;
}

describe("the grammar", () => {
  let grammar: textmate.IGrammar;
  before(async () => {
    grammar = await loadGrammar("source.dmir", "dmir");
  });

  const cases: { text: string; want: Record<string, string> }[] = [
    {
      text: "func.func private @ffn(%x: tensor<8x?xnxf16>) -> f32 {",
      want: {
        "func.func": "keyword.declaration.function",
        private: "storage.modifier",
        "@ffn": "entity.name.function",
        tensor: "support.type.shaped",
        "8": "constant.numeric.dimension",
        "?": "constant.numeric.dimension",
        n: "variable.parameter.dimension",
        f16: "support.type.scalar",
        f32: "support.type.scalar",
        "->": "keyword.operator.arrow",
      },
    },
    {
      text: '  %h:2 = dm.einsum "bln,nu->blu" %x, %w {axis = 1 : i64} // why',
      want: {
        h: "variable.other.ssa",
        ":2": "constant.numeric.result",
        dm: "support.other.namespace",
        einsum: "support.function.op",
        "bln,nu": "string.quoted.double",
        axis: "variable.other.property",
        i64: "support.type.scalar",
        why: "comment.line",
      },
    },
    { text: "%y = dm.kernel -> tensor<4xf32> {", want: { "dm.kernel": "keyword.control" } },
    {
      text: "%0 = stablehlo.add %a, %b : tensor<4xf32>",
      want: { stablehlo: "entity.name.namespace.dialect", add: "entity.name.function.op" },
    },
    {
      text: '%0 = "test.op"(%a) <{x = dense<1.5> : tensor<2xf32>}> : (f32) -> ()',
      want: { test: "entity.name.namespace.dialect", op: "entity.name.function.op", dense: "keyword.other", "1.5": "constant.numeric.float" },
    },
    {
      text: "#map = affine_map<(d0) -> (d0)>",
      want: { "#map": "entity.name.type.alias", affine_map: "keyword.other" },
    },
    { text: "^bb0:", want: { "^bb0": "entity.name.label.block" } },
    {
      text: "tensor<8xf16, #dm.at<hbm, order = [1, 0]>> %v",
      want: { "#dm.at": "entity.other.attribute-name", hbm: "support.constant.space", order: "variable.other.property", v: "variable.other.ssa" },
    },
    {
      text: "%0 = dm.add %a, %b : f32 // dmir: ignore[DM201] measured",
      want: { "[DM201]": "constant.other.rule", ignore: "keyword.other.directive" },
    },
  ];
  for (const { text, want } of cases) {
    it(`colours ${text.trim()}`, () => {
      const got = scopes(grammar, text);
      for (const [piece, scope] of Object.entries(want)) {
        assert.ok(got.get(piece)?.startsWith(`${scope}.`), `${piece}: ${got.get(piece) ?? "not a token"}, want ${scope}`);
      }
    });
  }

  it("closes what it opens: the line after a type is not a type", () => {
    const got = scopes(grammar, "%a = dm.exp %x : tensor<4x!q.t<i8:f32>>\n%b = dm.tanh %a : f32");
    assert.ok(got.get("tanh")?.startsWith("support.function.op."));
  });
});

describe("the grammar of dmir.toml", () => {
  it("colours tables, keys, values and comments", async () => {
    const text = '# the machine\ntarget = "a100-80" # ours\n\n[machines.mine]\nbandwidth = 3.35e12\nnames.x = [1, true]\ntext = """\nmore\n"""\nlast = \'raw\'\n';
    const got = scopes(await loadGrammar("source.toml.dmir", "dmir-config"), text);
    for (const [piece, scope] of Object.entries({
      "# the machine": "comment.line",
      target: "support.type.property-name",
      "a100-80": "string.quoted.double",
      "machines.mine": "entity.name.section",
      "3.35e12": "constant.numeric",
      names: "support.type.property-name",
      "1": "constant.numeric",
      true: "constant.language",
      more: "string.quoted.triple",
      last: "support.type.property-name",
      raw: "string.quoted.single",
    })) assert.ok([...got].some(([text, name]) => text.includes(piece) && name.startsWith(`${scope}.`)), `${piece}: ${JSON.stringify([...got])}`);
  });
});
