/** How wide an element is, so that a picture can be drawn in real pixels. */
import { useEffect, useRef, useState } from 'preact/hooks';

export function useWidth<E extends HTMLElement>() {
  const element = useRef<E>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => setWidth(Math.floor(entry!.contentRect.width)));
    watch.observe(element.current!);
    return () => watch.disconnect();
  }, []);
  return { element, width };
}
