import { useEffect, useId, useState } from "preact/hooks";
import { hrefOf } from "../router/location.ts";
import { Icon } from "./icon.tsx";

interface TabsProps {
  readonly label: string;
  /** Path of the page, which is the address of the first tab. */
  readonly path: readonly string[];
  readonly current: string;
  readonly tabs: readonly { readonly name: string; readonly title: string }[];
}

/** Links to the parts of a page. On a narrow screen a button with the current one opens them. */
export function Tabs({ label, path, current, tabs }: TabsProps) {
  const [isOpen, setOpen] = useState(false);
  const id = useId();
  useEffect(() => setOpen(false), [current]);
  return (
    <nav class="tabs" aria-label={label} data-open={String(isOpen)}>
      <button class="button" type="button" aria-expanded={isOpen} aria-controls={id} onClick={() => setOpen(!isOpen)}>
        {tabs.find(({ name }) => name === current)?.title ?? "Parts"}
        <Icon name="menu" />
      </button>
      <div id={id}>
        {tabs.map(({ name, title }, index) => (
          <a
            key={name}
            href={hrefOf(...path, ...(index === 0 ? [] : [name]))}
            aria-current={name === current ? "page" : undefined}
          >
            {title}
          </a>
        ))}
      </div>
    </nav>
  );
}
