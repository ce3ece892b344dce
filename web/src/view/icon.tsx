/** Small drawings, 16 pixels: strokes in the colour of the text. What they mean stands beside them, or in a label. */

const PATHS = {
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM10.7 10.7 14 14",
  menu: "M2 4h12M2 8h12M2 12h12",
  close: "M4 4l8 8M12 4l-8 8",
  check: "M3 8.5 6.5 12 13 4.5",
  chevron: "M6 3.5 10.5 8 6 12.5",
  down: "M3.5 6 8 10.5 12.5 6",
  copy: "M6 6V3.5A1.5 1.5 0 0 1 7.5 2h5A1.5 1.5 0 0 1 14 3.5v5a1.5 1.5 0 0 1-1.5 1.5H10M3.5 6h5A1.5 1.5 0 0 1 10 7.5v5A1.5 1.5 0 0 1 8.5 14h-5A1.5 1.5 0 0 1 2 12.5v-5A1.5 1.5 0 0 1 3.5 6z",
  sun: "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM8 1.5v1M8 13.5v1M1.5 8h1M13.5 8h1M3.4 3.4l.7.7M11.9 11.9l.7.7M3.4 12.6l.7-.7M11.9 4.1l.7-.7",
  moon: "M13.5 9.5A6 6 0 0 1 6.5 2.5a6 6 0 1 0 7 7z",
  contrast: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 2v12M10.5 3.5v9M12.5 5.5v5",
  clock: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 4.5V8l2.5 1.5",
  person: "M8 8a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM2.5 14c.5-3 2.7-4.5 5.5-4.5s5 1.5 5.5 4.5",
  play: "M4.5 2.5v11l9-5.5z",
  pause: "M5 3v10M11 3v10",
  retry: "M13 3v3.5H9.5M12.6 6.5A5.2 5.2 0 1 0 13 9.5",
  stop: "M3.5 3.5h9v9h-9z",
  plus: "M8 3v10M3 8h10",
  trash: "M3 4.5h10M6.5 4.5V3h3v1.5M4.5 4.5l.5 9h6l.5-9",
  edit: "M10.5 3 13 5.5 5.5 13H3v-2.5z",
  star: "M8 2l1.8 3.8 4.2.6-3 2.9.7 4.2L8 11.5l-3.7 2 .7-4.2-3-2.9 4.2-.6z",
  warning: "M8 2.5 14.5 13.5h-13zM8 6.5v3.2M8 11.6v.2",
  info: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 7.5v3.5M8 5v.2",
  link: "M6.5 9.5 9.5 6.5M7 4.5 8.7 2.8a3.2 3.2 0 0 1 4.5 4.5L11.5 9M9 11.5l-1.7 1.7a3.2 3.2 0 0 1-4.5-4.5L4.5 7",
  more: "M3 8h.1M8 8h.1M13 8h.1",
  keyboard: "M1.5 4h13v8h-13zM4 6.5h.1M6.7 6.5h.1M9.3 6.5h.1M12 6.5h.1M5 9.5h6",
  first: "M4 3v10M12.5 3.5 7 8l5.5 4.5z",
  previous: "M11 3.5 5.5 8l5.5 4.5z",
  next: "M5 3.5 10.5 8 5 12.5z",
  last: "M12 3v10M3.5 3.5 9 8l-5.5 4.5z",
  fork: "M4 5.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3zM12 5.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3zM4 13.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3zM4 5.5v5M12 5.5C12 8.5 4 7 4 10.5",
  bell: "M4 11V7.5a4 4 0 0 1 8 0V11l1 1.2H3zM7 14h2",
  save: "M8 2.5v7.5M4.8 7 8 10.2 11.2 7M2.5 13.5h11",
} as const;
export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 16 16" fill="none" stroke="currentColor" stroke-width="1.6" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
