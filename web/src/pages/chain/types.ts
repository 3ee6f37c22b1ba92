/** What the pages of chains read. */
import type { Instant } from '../../lib/types';

export interface Spot {
  id: string;
  type: string;
  layer: number;
  row: number;
  x: number;
  y: number;
  state: string | null;
  run_id: number | null;
}

export interface Layout {
  nodes: Spot[];
  edges: { from: string; to: string }[];
  width: number;
  height: number;
  node_width: number;
  node_height: number;
}

export interface Step {
  id: string;
  kind: string;
  needs: string[];
  when: string;
  run_id: number | null;
  state: string;
  reason: string | null;
  attempt: number;
  error: string;
  artifact: unknown;
  checkpoint: unknown;
  started_at: Instant | null;
  ended_at: Instant | null;
}

export interface Grid {
  nodes: string[];
  runs: { run_id: number; state: string; started_at: Instant | null; states: (string | null)[] }[];
}
