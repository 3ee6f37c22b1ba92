// Fails when a .tsx file holds words for people: they belong into i18n/*.json, in both languages.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

const root = join(import.meta.dirname, '../src');
const spoken = new Set(['title', 'placeholder', 'label', 'aria-label', 'alt', 'hint', 'text']);
// Names and notations are the same in every language.
const names = /^(ksana|Ksana|ksk_…|[A-Z]\w+\/[A-Z]\w+|https?:\S+|English|中文|EN|中|UTC|JSON|curl|Python|Esc|Enter|Shift|Ctrl|⌘K|[^\p{L}]*|[a-z?/[\]]|ms|p50|p95|\d+[smh]|default)$/u;
const found = [];

for (const entry of readdirSync(root, { recursive: true })) {
  if (!entry.endsWith('.tsx')) continue;
  const source = ts.createSourceFile(entry, readFileSync(join(root, entry), 'utf8'), ts.ScriptTarget.Latest, true);
  const check = (node, text) => {
    if (names.test(text.trim())) return;
    const { line } = source.getLineAndCharacterOfPosition(node.getStart());
    found.push(`src/${entry}:${line + 1}: ${JSON.stringify(text.trim())}`);
  };
  const visit = (node) => {
    if (ts.isJsxText(node)) check(node, node.text);
    if (ts.isJsxAttribute(node) && node.initializer && ts.isStringLiteral(node.initializer)) {
      if (spoken.has(node.name.getText())) check(node, node.initializer.text);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
}

if (found.length) {
  console.error(`words for people belong into i18n/en.json and i18n/zh-CN.json:\n${found.join('\n')}`);
  process.exit(1);
}
