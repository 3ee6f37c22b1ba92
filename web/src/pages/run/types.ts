/** What the page of a run reads. */
import type { Attempt, Body, Instant, Run } from '../../lib/types';

export interface Segment {
  kind: 'wait' | 'attempt' | 'back_off' | 'callback' | 'steps';
  attempt: number | null;
  from: Instant;
  to: Instant;
  ms: number;
  outcome: string | null;
  code: number | null;
}

export interface Callback {
  id: number;
  received_at: Instant;
  status: string;
  note: string;
  headers: Record<string, string>;
  body: Body;
}

export interface RunDiff {
  left: Run;
  right: Run;
  changes: { path: string; left: unknown; right: unknown }[];
}

export interface Neighbours {
  previous: number | null;
  next: number | null;
  previous_same_job: number | null;
  next_same_job: number | null;
}

export interface Similar {
  count: number;
  first_at: Instant | null;
  last_at: Instant | null;
  run_ids: number[];
  is_partial: boolean;
}

/** A run with everything that moves while it does. */
export interface Story {
  run: Run;
  attempts: Attempt[];
  segments: Segment[];
  callbacks: Callback[];
}
