import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { Icon } from "../parts/icon.tsx";

interface SignInFrameProps {
  readonly title: string;
  /** The form. */
  readonly children: ComponentChildren;
}

/** The page around a form for users who are not signed in. */
export function SignInFrame({ title, children }: SignInFrameProps) {
  useEffect(() => {
    document.title = `${title} - Holdfast`;
  }, [title]);
  return (
    <div class="sign-in">
      <main id="content">
        <div class="brand">
          <span class="mark">
            <Icon name="layers" />
          </span>
          Holdfast
        </div>
        <section class="card">{children}</section>
        <p class="quiet small">
          From a terminal, <code>holdfast console</code> opens this page signed in.
        </p>
      </main>
    </div>
  );
}
