/** What the page of runs reads besides runs. */
import type { Instant } from '../../lib/types';

export interface HistogramView {
  since: Instant;
  until: Instant;
  step_seconds: number;
  bars: { at: Instant; by_state: Record<string, number> }[];
  truncated: boolean;
  complete_since: Instant;
}
