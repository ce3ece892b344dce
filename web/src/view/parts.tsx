/** The small parts that every page uses. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Resource } from "../api/resource";
import type { ProblemDocument } from "../api/types";
import { takeArrival } from "../router";
import { toast } from "../shell/toasts";
import { Icon, type IconName } from "./icon";
import { Prose } from "./prose";
import { Time } from "./time";

type ButtonProps = Omit<JSX.ButtonHTMLAttributes<HTMLButtonElement>, "icon"> & {
  kind?: "primary" | "danger" | "bare";
  small?: boolean;
  icon?: IconName;
};

export function Button({ kind, small, icon, children, class: extra, ...rest }: ButtonProps) {
  const classes = ["button", kind, small && "small", icon && !children && "icon", extra].filter(Boolean).join(" ");
  return (
    <button type="button" class={classes} {...rest}>
      {icon && <Icon name={icon} size={small ? 14 : 16} />}
      {children}
    </button>
  );
}

export function LinkButton({ href, kind, small, icon, children }: { href: string; kind?: "primary"; small?: boolean; icon?: IconName; children: ComponentChildren }) {
  return (
    <a class={["button", kind, small && "small"].filter(Boolean).join(" ")} href={href}>
      {icon && <Icon name={icon} size={small ? 14 : 16} />}
      {children}
    </a>
  );
}

/** An error: what, what to do, and a way to try again. */
export function Problem({ problem, retry }: { problem: ProblemDocument; retry?: () => void }) {
  return (
    <div class="problem" role="alert">
      <Icon name="warning" />
      <div class="text">
        <p>
          <code>{problem.code}</code> <Prose text={problem.detail || problem.title} />
        </p>
        {problem.pointer && <p class="small muted">at <code>{problem.pointer}</code></p>}
        {problem.problems?.slice(0, 20).map((item) => (
          <p class="small" key={`${item.line}:${item.column}:${item.code}`}>
            <code>{item.line}:{item.column} {item.code}</code> <Prose text={`${item.message} ${item.hint}`} />
          </p>
        ))}
        {problem.hint && <p class="small muted"><Prose text={problem.hint} /></p>}
      </div>
      {retry && <Button small icon="retry" onClick={retry}>Try again</Button>}
    </div>
  );
}

export function Empty({ title, children, action }: { title: string; children?: ComponentChildren; action?: ComponentChildren }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children && <p>{children}</p>}
      {action && <div class="row wrap">{action}</div>}
    </div>
  );
}

/** Shows what was read; a problem beside it if it could not be read again. */
export function Loaded<T>({ from, children }: { from: Resource<T>; children: (data: T) => ComponentChildren }) {
  const data = from.data.value;
  const problem = from.problem.value;
  return (
    <>
      {problem && <Problem problem={problem} retry={() => void from.reload()} />}
      {problem && data !== undefined && (
        <p class="small muted">Shown as read <Time at={new Date(from.readAt.value).toISOString()} />.</p>
      )}
      {data === undefined ? !problem && <p class="loading" role="status">Loading…</p> : children(data)}
    </>
  );
}

/** The head of a page. A screen reader goes on there after a link, as it does when a document is loaded. */
export function PageHead({ title, before, children }: { title: ComponentChildren; before?: ComponentChildren; children?: ComponentChildren }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (takeArrival()) heading.current?.focus({ preventScroll: true });
  }, []);
  return (
    <div class="page-head">
      <div class="grow">
        {before && <div class="crumbs">{before}</div>}
        <h1 tabIndex={-1} ref={heading}>{title}</h1>
      </div>
      {children && <div class="actions">{children}</div>}
    </div>
  );
}

export async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    toast("Copied");
  } catch {
    toast("The browser does not allow copying here", "bad");
  }
}

/** A command, ready to be copied. */
export function CommandLine({ text }: { text: string }) {
  return (
    <div class="command">
      <code tabIndex={text.length > 300 ? 0 : undefined}>{text}</code>
      <Button small kind="bare" icon="copy" aria-label="Copy the command" title="Copy" onClick={() => void copyText(text)} />
    </div>
  );
}

export function Labels({ labels }: { labels: Record<string, string> }) {
  return (
    <>
      {Object.entries(labels).map(([name, value]) => (
        <span class="label" key={name} title={`${name}=${value}`}>
          <span>{name}={value}</span>
        </span>
      ))}
    </>
  );
}

export interface Tab {
  name: string;
  title: ComponentChildren;
  href: string;
}

/** Tabs that are links: each has its address. */
export function Tabs({ tabs, chosen, label }: { tabs: readonly Tab[]; chosen: string; label: string }) {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map((tab) => (
        <a key={tab.name} href={tab.href} aria-current={tab.name === chosen ? "page" : undefined}>{tab.title}</a>
      ))}
    </nav>
  );
}

/** One of a few, at once visible. */
export function Segments<T extends string>({ options, chosen, choose, label }: { options: readonly (readonly [T, string])[]; chosen: T; choose: (value: T) => void; label: string }) {
  return (
    <div class="segments" role="group" aria-label={label}>
      {options.map(([value, text]) => (
        <button type="button" key={value} aria-pressed={value === chosen} onClick={() => choose(value)}>{text}</button>
      ))}
    </div>
  );
}
