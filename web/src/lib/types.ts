/** What /api/v2 answers, as far as the console reads it. Instants are RFC 3339 text in UTC. */

export type Instant = string;

export interface Page<T> {
  items: T[];
  total: number;
  page: number;
  page_size: number;
}

export type Schedule =
  | { kind: 'once'; run_at: Instant }
  | {
      kind: 'every';
      every: string;
      origin_at?: Instant;
      start_at?: Instant | null;
      end_at?: Instant | null;
      jitter?: string;
    }
  | {
      kind: 'cron';
      expr: string;
      timezone?: string;
      start_at?: Instant | null;
      end_at?: Instant | null;
      jitter?: string;
    };

export interface Target {
  kind: string;
  config: Record<string, unknown>;
}

export interface Job {
  id: number;
  surface: string;
  ref: string;
  name: string;
  description: string;
  tags: string[];
  enabled: boolean;
  version: number;
  target: Target;
  schedule: Schedule | null;
  schedule_words: Words | null;
  queue: string;
  priority: 'low' | 'normal' | 'high';
  retry: {
    max_attempts: number;
    strategy: 'fixed' | 'exponential';
    initial_delay: string;
    multiplier: number;
    max_delay: string;
  };
  overlap: { rule: 'queue' | 'skip' | 'parallel'; max_concurrency: number };
  misfire: { rule: 'skip' | 'fire_once' | 'catch_up'; limit: number };
  timeouts: { total: string; connect: string; callback: string };
  on_uncertain: 'retry' | 'fail' | null;
  created_at: Instant;
  updated_at: Instant;
  paused_at: Instant | null;
  paused_until: Instant | null;
  pause_reason: string;
  next_slot_at: Instant | null;
  next_fire_at: Instant | null;
  last_run: Run | null;
}

export interface Run {
  id: number;
  job_id: number | null;
  job_name: string | null;
  surface: string;
  kind: string;
  queue: string;
  trigger: string;
  planned_at: Instant;
  state: string;
  reason: string | null;
  attempt: number;
  failures: number;
  reclaims: number;
  fence: number;
  priority: string;
  due_at: Instant;
  deadline_at: Instant | null;
  node_id: number | null;
  created_at: Instant;
  started_at: Instant | null;
  ended_at: Instant | null;
  duration_ms: number | null;
  error: string;
  progress: { fraction: number | null; message: string; reported_at: Instant } | null;
  parent_id: number | null;
  step: string | null;
  input: unknown;
}

export interface Body {
  text: string | null;
  base64: string | null;
  bytes: number;
}

export interface Attempt {
  number: number;
  fence: number;
  node_id: number | null;
  started_at: Instant;
  ended_at: Instant;
  duration_ms: number;
  verdict: string;
  timed_out: boolean;
  code: number | null;
  error: string;
  result: unknown;
  request: { line: string; headers: Record<string, string>; body: Body } | null;
  response: { code: number | null; headers: Record<string, string>; body: Body; truncated: boolean } | null;
}

export interface Fire {
  from_at: Instant;
  to_at: Instant;
  count: number;
  decision: string;
  reason: string | null;
  run_id: number | null;
  recorded_at: Instant;
}

export interface Words {
  en: string;
  zh: string;
}

export interface Preview {
  normalized: string | null;
  next: Instant[];
  words: Words;
  lints: { code: string; message: Words }[];
  fires: { at: Instant; local: string; dst: Words | null }[];
}

export interface Outcomes {
  job_id: number;
  last: { run_id: number; state: string; ended_at: Instant }[];
  p95_ms: number | null;
  success_rate: number | null;
}

export interface Attention {
  kind: 'failed' | 'dead_letter' | 'missed' | 'late_callback';
  count: number;
  text: string;
  run_id?: number | null;
  job_id?: number | null;
  at: Instant | null;
}

export interface Overview {
  now: Instant;
  attention: Attention[];
  next: { job_id: number; name: string; at: Instant }[];
  running: { here: number; capacity: number };
  day: Record<string, number>;
  start_delay: { p50_ms: number | null; p95_ms: number | null; samples: number };
  callbacks: { waiting: number; late: number };
  queues: { due: number; lag_seconds: number; held: number; dead_letters: number };
  jobs: { total: number; enabled: number; paused: number };
  failures: Run[];
  is_empty: boolean;
}

export interface Mark {
  from: Instant;
  to: Instant;
  state: string;
  count: number;
  run_id?: number | null;
  planned: boolean;
}

export interface Lane {
  key: string;
  label: string;
  job_id?: number | null;
  marks: Mark[];
}

export interface TimelineView {
  since: Instant;
  until: Instant;
  now: Instant;
  lanes: Lane[];
  more: number;
}

export interface Heatmap {
  timezone: string;
  cells: { day: string; hour: number; total: number; bad: number; late_ms_avg: number }[];
}

export interface Operation {
  id: string | null;
  action: string;
  actor: string;
  reason: string;
  state: 'running' | 'done' | 'canceled' | null;
  total: number;
  done: number;
  failed: number;
  errors: { id: number; message: string }[];
  sample: { id: number; name: string | null; state: string | null }[];
  started_at: Instant | null;
  ended_at: Instant | null;
}

export interface AuditEntry {
  id: number;
  at: Instant;
  actor: string;
  action: string;
  subject: string;
  subject_id: string;
  reason: string;
  before: unknown;
  after: unknown;
  request_id: string | null;
}

export interface Change {
  path: string;
  before: unknown;
  after: unknown;
}

export interface JobVersion {
  version: number;
  at: Instant;
  actor: string;
  action: string;
  reason: string;
  changes: Change[];
  definition: Job | null;
}
