import type { ComponentChildren } from "preact";
import { Icon, type IconName } from "./icon.tsx";
import { showToast } from "./toasts.tsx";

interface ButtonProps {
  readonly kind?: "primary" | "danger" | "plain" | "normal";
  readonly icon?: IconName;
  readonly type?: "button" | "submit";
  readonly busy?: boolean;
  /** Reason why the button cannot be used now. It remains focusable, so that users of the keyboard can read this. */
  readonly refusal?: string | undefined;
  /** Name for screen readers, for a button that has only an icon. */
  readonly label?: string;
  readonly onClick?: () => void;
  readonly children?: ComponentChildren;
}

/** A button. While it is busy or refused, a click has no effect. */
export function Button({ kind = "normal", icon, type = "button", busy = false, ...rest }: ButtonProps) {
  const { refusal, label, onClick, children } = rest;
  const isOff = busy || refusal !== undefined;
  return (
    <button
      class="button"
      data-kind={kind}
      type={type}
      aria-disabled={isOff ? "true" : undefined}
      aria-label={label}
      title={refusal ?? label}
      onClick={(event) => {
        if (isOff) event.preventDefault();
        else onClick?.();
        // A touch screen has no tooltip.
        if (refusal !== undefined) showToast("bad", refusal);
      }}
    >
      {busy ? <span class="spinner" aria-hidden="true" /> : icon && <Icon name={icon} />}
      {children}
      {refusal !== undefined && <span class="visually-hidden">{refusal}</span>}
    </button>
  );
}

/** A link that looks like a button. */
export function ButtonLink({
  href,
  kind = "normal",
  icon,
  refusal,
  children,
}: ButtonProps & { readonly href: string }) {
  if (refusal !== undefined) {
    const off = { kind, refusal, children };
    return icon === undefined ? <Button {...off} /> : <Button {...off} icon={icon} />;
  }
  return (
    <a class="button" data-kind={kind} href={href}>
      {icon && <Icon name={icon} />}
      {children}
    </a>
  );
}
