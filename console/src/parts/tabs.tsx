import { useEffect, useRef } from "preact/hooks";
import { hrefOf } from "../router/location.ts";

interface TabsProps {
  readonly label: string;
  /** Path of the page, which is the address of the first tab. */
  readonly path: readonly string[];
  readonly current: string;
  readonly tabs: readonly { readonly name: string; readonly title: string }[];
}

/** Links to the parts of a page. On a narrow screen they scroll, and the current one is visible. */
export function Tabs({ label, path, current, tabs }: TabsProps) {
  const nav = useRef<HTMLElement>(null);
  useEffect(() => {
    nav.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [current]);
  return (
    <nav class="tabs" aria-label={label} ref={nav}>
      {tabs.map(({ name, title }, index) => (
        <a
          key={name}
          href={hrefOf(...path, ...(index === 0 ? [] : [name]))}
          aria-current={name === current ? "page" : undefined}
        >
          {title}
        </a>
      ))}
    </nav>
  );
}
