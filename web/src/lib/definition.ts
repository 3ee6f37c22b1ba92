/** The definition of a job while it is edited: what the form, the JSON, the curl and the Python view show alike. */
import { root } from './router';
import type { Job, Schedule, Target } from './types';

export interface Draft {
  name: string;
  description?: string;
  tags?: string[];
  enabled?: boolean;
  target: Target;
  schedule?: Schedule | null;
  queue?: string;
  priority?: string;
  retry?: Partial<Job['retry']>;
  overlap?: Partial<Job['overlap']>;
  misfire?: Partial<Job['misfire']>;
  timeouts?: Partial<Job['timeouts']>;
  on_uncertain?: string;
}

export const emptyDraft = (): Draft => ({
  name: '',
  target: { kind: 'http', config: { method: 'POST', url: '' } },
  schedule: { kind: 'cron', expr: '0 9 * * 1-5', timezone: Intl.DateTimeFormat().resolvedOptions().timeZone },
});

export function draftOf(job: Job): Draft {
  return {
    name: job.name,
    description: job.description,
    tags: job.tags,
    target: job.target,
    schedule: job.schedule && scheduleOf(job.schedule),
    queue: job.queue,
    priority: job.priority,
    retry: job.retry,
    overlap: job.overlap,
    misfire: job.misfire,
    timeouts: job.timeouts,
    ...(job.on_uncertain ? { on_uncertain: job.on_uncertain } : {}),
  };
}

/** A schedule as it is said: without what the server adds, and without what is not set. */
export function scheduleOf(schedule: Schedule): Schedule {
  const said = Object.entries(schedule).filter(
    ([name, value]) => name !== 'origin_at' && value !== null && value !== '' && !(name === 'jitter' && value === '0s'),
  );
  return Object.fromEntries(said) as Schedule;
}

/** What a change has to say: the parts that differ. */
export function changeOf(old: Draft, draft: Draft): Partial<Draft> {
  const changed = Object.entries(draft).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(old[name as keyof Draft]),
  );
  const isUnscheduled = old.schedule && !draft.schedule;
  return { ...Object.fromEntries(changed), ...(isUnscheduled ? { schedule: null } : {}) };
}

export const shellQuoted = (text: string): string => `'${text.replace(/'/g, `'\\''`)}'`;

export function asCurl(draft: Draft, job?: Job): string {
  const address = `${location.origin}${root}api/v2/jobs${job ? `/${job.id}` : ''}`;
  return [
    `curl -X ${job ? 'PATCH' : 'POST'} ${shellQuoted(address)}`,
    `-H 'Content-Type: application/json'`,
    `-H "Authorization: Bearer $KSANA_TOKEN"`,
    `-d ${shellQuoted(JSON.stringify(draft, null, 2))}`,
  ].join(' \\\n  ');
}

function pythonic(value: unknown, indent = ''): string {
  if (value === null || value === undefined) return 'None';
  if (value === true) return 'True';
  if (value === false) return 'False';
  const deeper = `${indent}    `;
  if (Array.isArray(value)) return `[${value.map((each) => pythonic(each, indent)).join(', ')}]`;
  if (typeof value === 'object') {
    const entries = Object.entries(value).map(([name, each]) => `${deeper}${JSON.stringify(name)}: ${pythonic(each, deeper)},\n`);
    return entries.length ? `{\n${entries.join('')}${indent}}` : '{}';
  }
  return JSON.stringify(value);
}

const SCHEDULE_WORDS: Record<string, string> = { expr: 'cron', run_at: 'at', timezone: 'tz' };

export function asPython(draft: Draft, job?: Job): string {
  const { name, schedule, ...rest } = draft;
  const said: [string, unknown][] = [
    ...Object.entries(rest),
    ...Object.entries(schedule ?? {})
      .filter(([word]) => word !== 'kind')
      .map(([word, value]): [string, unknown] => [SCHEDULE_WORDS[word] ?? word, value]),
  ];
  const words = said.map(([word, value]) => `        ${word}=${pythonic(value, '        ')},\n`).join('');
  const first = job ? `${job.id},\n        name=${JSON.stringify(name)}` : JSON.stringify(name);
  return `from ksana import Client

with Client(${JSON.stringify(location.origin + root.replace(/\/$/, ''))}) as ksana:
    ksana.jobs.${job ? 'change' : 'create'}(
        ${first},
${words}    )
`;
}
