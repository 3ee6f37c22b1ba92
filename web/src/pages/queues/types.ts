/** What the page of queues reads: /api/v2/queues and the queue's own API under /scheduler. */
import type { Instant } from '../../lib/types';

export interface Queue {
  queue: string;
  paused: boolean;
  reason: string;
  queued: number;
  due: number;
  lag_seconds: number;
  held: number;
  dead_letters: number;
  limits: {
    concurrency: number | null;
    rate: { count: number; per: string } | null;
    key_concurrency: number | null;
    key_rate: { count: number; per: string } | null;
  } | null;
}

export interface QueueSettings {
  queue: string;
  version: number;
  paused: boolean;
  reason: string;
  concurrency: number | null;
  rate: { count: number; per_sec: number } | null;
  key_concurrency: number | null;
  key_rate: { count: number; per_sec: number } | null;
}

export interface Item {
  job_id: string;
  queue: string;
  type: string | null;
  object_type: string | null;
  object_id: string | null;
  action: string | null;
  payload: unknown;
  run_at: Instant;
  priority: string;
  attempt: number;
  max_attempts: number;
  idempotency_key: string | null;
  group_key: string | null;
  status: string;
  last_error: string | null;
  worker_id: string | null;
  lease_until: Instant | null;
  created_at: Instant;
  started_at: Instant | null;
  ended_at: Instant | null;
}

export interface ItemDetail extends Item {
  progress: unknown;
  output: unknown;
}

export interface DeadGroup {
  queue: string;
  error: string;
  count: number;
  first_at: Instant;
  last_at: Instant;
  job_id: string;
}

export interface Holder {
  queue: string;
  holder: string;
  items: number;
  oldest_until: Instant | null;
}

export interface GovernedObject {
  object_type: string;
  object_id: string;
  version: number;
  risk_tier: string;
  epistemic_state: string;
  unknown_type: string | null;
  auto_verify_budget: number;
  verify_count: number;
  unknowable_verify_cap: number;
  unknowable_verify_count: number;
  gates: Record<string, string>;
  held_back: boolean;
  next_action_at: Instant | null;
  attributes: Record<string, unknown>;
  updated_at: Instant;
}

export interface ObjectChange {
  id: number;
  at: Instant;
  actor: string;
  action: string;
  reason: string;
  before: unknown;
  after: unknown;
}

/** The run behind an item: `job_17` is run 17. */
export const runOf = (jobId: string): number => Number(jobId.replace('job_', ''));

/** Items are called done by another word than runs. */
export const stateOf = (status: string): string => (status === 'succeeded' ? 'SUCCESS' : status.toUpperCase());
