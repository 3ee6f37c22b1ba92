/** What a job does: fields for the targets people use most, JSON for every other. */
import { useState } from 'preact/hooks';
import { api } from '../../lib/api';
import { t, word } from '../../lib/i18n';
import { useResource } from '../../lib/resource';
import type { Target } from '../../lib/types';
import { Card, Select, TextField } from '../../ui/controls';
import type { Faults } from './definition';
import type { PartProps } from './form';

const fresh: Record<string, Record<string, unknown>> = {
  http: { method: 'POST', url: '' },
  python: { function: '' },
  sleep: { for: '5s' },
};

export function TargetFields({ draft, onDraft, faults }: PartProps) {
  const targets = useResource<string[]>((abort) => api.get('targets', {}, abort), []);
  const { kind, config } = draft.target;
  const set = (target: Target): void => onDraft({ ...draft, target });
  const parts = { config, onConfig: (next: Record<string, unknown>) => set({ kind, config: next }), faults };
  return (
    <Card title={t('form.target')}>
      <div class="body form">
        <Select
          label={t('jobs.kind')}
          value={kind}
          options={[...new Set([...(targets.data ?? []), kind])].map((value) => ({ value, text: word('kind', value) }))}
          onChange={(value) => set({ kind: value, config: fresh[value] ?? {} })}
          error={faults('target.kind')}
        />
        {kind === 'http' ? <HttpFields {...parts} /> : kind === 'python' ? <PythonFields {...parts} /> : <AnyFields key={kind} {...parts} />}
      </div>
    </Card>
  );
}

interface ConfigProps {
  config: Record<string, unknown>;
  onConfig: (config: Record<string, unknown>) => void;
  faults: Faults;
}

const without = (config: Record<string, unknown>, ...names: string[]): Record<string, unknown> =>
  Object.fromEntries(Object.entries(config).filter(([name]) => !names.includes(name)));

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD'];

function HttpFields({ config, onConfig, faults }: ConfigProps) {
  const [headers, setHeaders] = useState(() =>
    Object.entries((config.headers as Record<string, string> | undefined) ?? {})
      .map(([name, value]) => `${name}: ${value}`)
      .join('\n'),
  );
  const [body, setBody] = useState(() => ('json' in config ? JSON.stringify(config.json, null, 2) : ((config.body as string) ?? '')));
  return (
    <>
      <Select label={t('form.method')} value={String(config.method ?? 'POST')} options={METHODS.map((value) => ({ value, text: value }))} onChange={(method) => onConfig({ ...config, method })} error={faults('target.config.method')} />
      <Select
        label={t('form.mode')}
        value={String(config.mode ?? 'sync')}
        options={[
          { value: 'sync', text: t('form.mode_sync') },
          { value: 'async', text: t('form.mode_async') },
        ]}
        onChange={(mode) => onConfig({ ...config, mode })}
        error={faults('target.config.mode')}
      />
      <TextField label={t('form.url')} type="url" placeholder="https://example.com/hook" mono wide value={String(config.url ?? '')} onInput={(url) => onConfig({ ...config, url })} error={faults('target.config.url')} />
      <TextField
        label={t('form.headers')}
        hint={t('form.headers_hint')}
        rows={2}
        mono
        wide
        value={headers}
        onInput={(text) => {
          setHeaders(text);
          onConfig({ ...config, headers: readHeaders(text) });
        }}
        error={faults('target.config.headers')}
      />
      <TextField
        label={t('form.body')}
        hint={t('form.body_hint')}
        rows={4}
        mono
        wide
        value={body}
        onInput={(text) => {
          setBody(text);
          onConfig({ ...without(config, 'json', 'body'), ...readBody(text) });
        }}
        error={faults('target.config.json') ?? faults('target.config.body')}
      />
    </>
  );
}

function readHeaders(text: string): Record<string, string> {
  const lines = text.split('\n').filter((line) => line.includes(':'));
  return Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf(':')).trim(), line.slice(line.indexOf(':') + 1).trim()]));
}

/** JSON is sent as JSON, anything else as it is. */
function readBody(text: string): Record<string, unknown> {
  if (!text.trim()) return {};
  try {
    return { json: JSON.parse(text) as unknown };
  } catch {
    return { body: text };
  }
}

function PythonFields({ config, onConfig, faults }: ConfigProps) {
  return (
    <>
      <TextField label={t('form.function')} hint={t('form.function_hint')} mono value={String(config.function ?? '')} onInput={(name) => onConfig({ ...config, function: name })} error={faults('target.config.function')} />
      <JsonField label={t('form.args')} value={config.args ?? []} onValue={(args) => onConfig({ ...config, args })} error={faults('target.config.args')} />
      <JsonField label={t('form.kwargs')} value={config.kwargs ?? {}} onValue={(kwargs) => onConfig({ ...config, kwargs })} error={faults('target.config.kwargs')} />
    </>
  );
}

function AnyFields({ config, onConfig, faults }: ConfigProps) {
  const names = Object.keys(config);
  const error = [faults('target.config'), ...names.map((name) => faults(`target.config.${name}`))].find(Boolean);
  return <JsonField label={t('form.config')} value={config} onValue={(value) => onConfig(value as Record<string, unknown>)} error={error} rows={8} />;
}

interface JsonFieldProps {
  label: string;
  value: unknown;
  onValue: (value: unknown) => void;
  error?: string;
  hint?: string;
  rows?: number;
}

/** A value typed as JSON; what cannot be read is said and not handed on. */
export function JsonField({ label, value, onValue, error, hint, rows = 3 }: JsonFieldProps) {
  const [text, setText] = useState(() => (value === undefined ? '' : JSON.stringify(value, null, 2)));
  const [problem, setProblem] = useState('');
  return (
    <TextField
      label={label}
      hint={hint}
      rows={rows}
      mono
      wide
      value={text}
      error={problem || error}
      onInput={(typed) => {
        setText(typed);
        try {
          onValue(typed.trim() ? JSON.parse(typed) : undefined);
          setProblem('');
        } catch (reason) {
          setProblem((reason as Error).message);
        }
      }}
    />
  );
}
