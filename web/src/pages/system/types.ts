/** What the page of the system reads. */
import type { Instant } from '../../lib/types';

export interface SystemView {
  version: string;
  started_at: Instant | null;
  uptime_seconds: number;
  node_id: number | null;
  store: { kind: string; size_bytes: number | null; ok: boolean };
  nodes: { id: number; name: string; started_at: Instant; lease_until: Instant; is_alive: boolean; draining: boolean; held: number | null }[];
  checks: { name: string; level: 'ok' | 'warn' | 'bad'; text: string; fix: string | null }[];
  retention: { keep: string | null; keep_last: number };
  exposed: boolean;
  auth: boolean;
}

export interface Setting {
  name: string;
  value: string;
  source: string;
  env: string[];
  description: string;
}

export interface Alert {
  id: string;
  run_id: number;
  hook: string;
  state: string;
  attempts: number;
  created_at: Instant;
  due_at: Instant | null;
  ended_at: Instant | null;
  error: string;
  payload: unknown;
}
