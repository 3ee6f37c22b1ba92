/** JSON and other code, coloured lightly, with a button that copies it; and two values side by side. */
import { copy } from '../lib/feedback';
import { t } from '../lib/i18n';
import type { Change } from '../lib/types';
import { Button } from './controls';

const token = /("(?:\\.|[^"\\])*")(\s*:)?|\b(true|false|null)\b|-?\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b/g;
// Colouring costs an element per token; a huge body is shown plain.
const LARGE = 60_000;

function coloured(text: string) {
  if (text.length > LARGE) return text;
  const parts = [];
  let at = 0;
  for (const match of text.matchAll(token)) {
    if (match.index > at) parts.push(text.slice(at, match.index));
    const [whole, string, colon] = match;
    const kind = string ? (colon ? 'tok-name' : 'tok-string') : 'tok-value';
    parts.push(<span class={kind}>{string && colon ? string : whole}</span>);
    if (string && colon) parts.push(colon);
    at = match.index + whole.length;
  }
  parts.push(text.slice(at));
  return parts;
}

export function Code({ text, label, isJson = false }: { text: string; label?: string; isJson?: boolean }) {
  return (
    <div class="code">
      <Button icon="copy" label={t('act.copy')} quiet onClick={() => void copy(text)} />
      {/* A scrollable place has to be reachable by keyboard. */}
      <pre tabIndex={0} role="region" aria-label={label ?? t('code.label')}>
        {isJson ? coloured(text) : text}
      </pre>
    </div>
  );
}

export function Json({ value, label }: { value: unknown; label?: string }) {
  return <Code text={JSON.stringify(value, null, 2)} label={label} isJson />;
}

/** Text that may be JSON: laid out if it is, as it came if not. */
export function MaybeJson({ text, label }: { text: string; label?: string }) {
  try {
    return <Json value={JSON.parse(text)} label={label} />;
  } catch {
    return <Code text={text} label={label} />;
  }
}

const shown = (value: unknown): string =>
  value === undefined || value === null ? '–' : typeof value === 'string' ? value : JSON.stringify(value, null, 1);

/** What changed, field by field. */
export function Diff({ changes, left, right }: { changes: Change[]; left: string; right: string }) {
  if (!changes.length) return <p class="muted">{t('diff.none')}</p>;
  return (
    <div class="table-frame">
      <table class="diff">
        <thead>
          <tr>
            <th scope="col">{t('diff.field')}</th>
            <th scope="col">{left}</th>
            <th scope="col">{right}</th>
          </tr>
        </thead>
        <tbody>
          {changes.map((change) => (
            <tr key={change.path}>
              <th scope="row">{change.path}</th>
              <td class="before">{shown(change.before)}</td>
              <td class="after">{shown(change.after)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
