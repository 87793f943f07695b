/** Paths of icons in a field of 24 by 24, drawn by a line. */
const paths = {
  database:
    "M4 6c0-1.7 3.6-3 8-3s8 1.3 8 3-3.6 3-8 3-8-1.3-8-3Zm0 0v12c0 1.7 3.6 3 8 3s8-1.3 8-3V6M4 12c0 1.7 3.6 3 8 3s8-1.3 8-3",
  plus: "M12 5v14M5 12h14",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  check: "m5 12.5 4.5 4.5L19 7",
  alert: "M12 8.5v4.5M12 16.5v.01M10.3 4 2.6 17.5A2 2 0 0 0 4.3 20.5h15.4a2 2 0 0 0 1.7-3L13.7 4a2 2 0 0 0-3.4 0Z",
  alarm: "M6 16.5V11a6 6 0 0 1 12 0v5.5l1.5 2h-15zM10 21.5h4",
  info: "M12 11v5M12 8v.01M21 12a9 9 0 1 1-18 0 9 9 0 0 1 18 0Z",
  people:
    "M15.5 20v-1.5a4 4 0 0 0-4-4h-5a4 4 0 0 0-4 4V20M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7ZM21.5 20v-1.5a4 4 0 0 0-3-3.8M15.5 4.2a3.5 3.5 0 0 1 0 6.7",
  ticket: "M4 7h16v3.5a1.5 1.5 0 0 0 0 3V17H4v-3.5a1.5 1.5 0 0 0 0-3zM14 7v1.5M14 11.5v1M14 15.5V17",
  building: "M5 21V4h9v17M14 9h5v12M3 21h18M8 8h3M8 12h3M8 16h3",
  log: "M5 4h14v16H5zM9 9h6M9 13h6M9 17h3",
  key: "M14.5 9.5a4.5 4.5 0 1 0-4 4.4L12 15.5h2v2h2v2h3.5v-3.7l-5.3-5.2c.2-.3.3-.7.3-1.1ZM9 8.5v.01",
  bolt: "M13 3 5 14h6l-1 7 8-11h-6z",
  box: "m12 3 8 4.5v9L12 21l-8-4.5v-9zM4 7.5l8 4.5 8-4.5M12 12v9",
  folder: "M3 6.5A1.5 1.5 0 0 1 4.5 5H10l2 2.5h7.5A1.5 1.5 0 0 1 21 9v9a1.5 1.5 0 0 1-1.5 1.5h-15A1.5 1.5 0 0 1 3 18z",
  layers: "m12 3 9 5-9 5-9-5zM3 12.5l9 5 9-5M3 16.5l9 5 9-5",
  stack: "M4 15h16v5H4zM6 9.5h12V15H6zM8 4h8v5.5H8z",
  flow: "M8 6.5a2.5 2.5 0 1 1-5 0 2.5 2.5 0 0 1 5 0ZM21 17.5a2.5 2.5 0 1 1-5 0 2.5 2.5 0 0 1 5 0ZM8 6.5h5.5a3 3 0 0 1 3 3v1a3 3 0 0 1-3 3h-3a3 3 0 0 0-3 3v.5a3 3 0 0 0 3 .5H16",
  door: "M5 21h14M7 21V3h10v18M13.5 12v.01",
  spark: "M12 3c.8 4.6 3.4 7.2 8 8-4.6.8-7.2 3.4-8 8-.8-4.6-3.4-7.2-8-8 4.6-.8 7.2-3.4 8-8ZM19 16.5v4M17 18.5h4",
  send: "M20.5 3.5 10 14M20.5 3.5 14 21l-4-7-7-4z",
  server: "M4 4h16v7H4zM4 13h16v7H4zM7.5 7.5v.01M7.5 16.5v.01M12 7.5h5M12 16.5h5",
  list: "M9 6h11M9 12h11M9 18h11M4.5 6v.01M4.5 12v.01M4.5 18v.01",
  search: "M20 20l-4-4M18 11a7 7 0 1 1-14 0 7 7 0 0 1 14 0Z",
  menu: "M4 7h16M4 12h16M4 17h16",
  sun: "M12 4V2M12 22v-2M4 12H2M22 12h-2M6 6 4.7 4.7M19.3 19.3 18 18M6 18l-1.3 1.3M19.3 4.7 18 6M16 12a4 4 0 1 1-8 0 4 4 0 0 1 8 0Z",
  moon: "M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5Z",
  leave: "M10 4H5v16h5M16 8l4 4-4 4M20 12H9.5",
  eye: "M2.5 12S6 5.5 12 5.5 21.5 12 21.5 12 18 18.5 12 18.5 2.5 12 2.5 12ZM15 12a3 3 0 1 1-6 0 3 3 0 0 1 6 0Z",
  shield: "M12 3 4.5 6v5.5c0 5 3.2 8 7.5 9.5 4.3-1.5 7.5-4.5 7.5-9.5V6z",
  clock: "M12 7v5l3.5 2M21 12a9 9 0 1 1-18 0 9 9 0 0 1 18 0Z",
  palette:
    "M12 3a9 9 0 1 0 0 18c1.5 0 2-1 2-2 0-1.6-1-1.8-1-3s1-2 2.3-2H18a3 3 0 0 0 3-3c0-4.4-4-8-9-8ZM7.5 11v.01M10 7.5v.01M14.5 7.5v.01",
} as const;

export type IconName = keyof typeof paths;

/** An icon next to its text. Screen readers skip it. */
export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg
      class="icon"
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      stroke-width="1.7"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      <path d={paths[name]} />
    </svg>
  );
}
