/** An instant: absolute with its zone, and how far away it is. */
import { t } from '../lib/i18n';
import { now, relative, slowNow, wall, weekday, zoneFor } from '../lib/time';

interface Props {
  at: string | null | undefined;
  /** The zone of the job it belongs to, for those who chose to see times so. */
  zone?: string | null;
  /** Leave the date out where it is today's. */
  short?: boolean;
  /** Say how far away as well; on unless turned off. */
  distance?: boolean;
  withDay?: boolean;
}

export function Instant({ at, zone, short, distance = true, withDay }: Props) {
  if (!at) return <span class="muted">–</span>;
  const ms = Date.parse(at);
  const shown = wall(ms, zoneFor(zone));
  const isToday = short && shown.date === wall(slowNow.value, shown.zone).date;
  return (
    <time class="instant" dateTime={at} title={`${shown.date} ${shown.time} ${shown.offset} ${shown.zone}\n${at}`}>
      {withDay && <span class="day">{weekday(ms, shown.zone)} </span>}
      <span>
        {!isToday && `${shown.date} `}
        {shown.time}
      </span>
      <span class="offset"> {shown.offset}</span>
      {distance && <Distance ms={ms} />}
    </time>
  );
}

/** How far an instant is from now, counting along. */
export function Distance({ ms }: { ms: number }) {
  // Only what is near counts seconds; a long table would otherwise be drawn anew every second.
  const from = Math.abs(ms - slowNow.value) < 120_000 ? now.value : slowNow.value;
  return <span class="distance"> {Math.abs(ms - from) < 1000 ? t('time.now') : relative(ms, from)}</span>;
}
