/** The head of every page: where one is, search, zone, theme, who one is. */
import { useEffect, useState } from "preact/hooks";
import { partsOf } from "../format/time";
import { browserZone, theme, zone, type Theme } from "../preferences";
import { href, path } from "../router";
import { caller, may, signOut } from "../session";
import { Icon } from "../view/icon";
import { Dialog } from "./dialog";
import { openHelp } from "./help";
import { waitingCount } from "./inbox-count";
import { Menu } from "./menu";
import { DESTINATIONS, type Destination } from "./pages";
import { openPalette } from "./palette";

export function Header() {
  const [choosingZone, setChoosingZone] = useState(false);
  const shown = DESTINATIONS.filter((place) => may(place.role));
  return (
    <header class="header">
      <a class="brand" href={href("/")} aria-label="NoETL, home"><Logo /><span>NoETL</span></a>
      <nav aria-label="Pages">
        {shown.filter((place) => place.role !== "admin").map((place) => <NavLink key={place.path} place={place} />)}
      </nav>
      <button type="button" class="searchbox" aria-label="Search and commands" aria-keyshortcuts="/ Control+K" onClick={() => openPalette()}>
        <Icon name="search" /><span>Search</span><kbd>/</kbd>
      </button>
      <button type="button" class="tool zone" title={`Times are in ${zone.value}`} aria-label={`Time zone: ${zone.value}`} onClick={() => setChoosingZone(true)}>
        <Icon name="clock" /><span class="zone-name cut">{zone.value}</span>
      </button>
      <ThemeMenu />
      <Menu label={`Account of ${caller.value?.name ?? ""}`} class="tool account" button={<><Icon name="person" /><span class="account-role">{caller.value?.name}</span></>}>
        {() => <AccountItems />}
      </Menu>
      <Menu label="Menu" class="tool menu-button" button={<Icon name="menu" />}>
        {(close) => (
          <>
            {shown.filter((place) => place.role !== "admin").map((place) => <a class="menu-item" href={href(place.path)} key={place.path}>{place.title}{place.path === "/inbox" && <InboxCount />}</a>)}
            <hr />
            <button type="button" class="menu-item" onClick={() => { close(); setChoosingZone(true); }}>Time zone: {zone.value}</button>
            <hr />
            <AccountItems />
          </>
        )}
      </Menu>
      {choosingZone && <ZoneDialog close={() => setChoosingZone(false)} />}
    </header>
  );
}

function NavLink({ place }: { place: Destination }) {
  const here = place.path === "/" ? path.value === "/" : path.value === place.path || path.value.startsWith(`${place.path}/`);
  return (
    <a href={href(place.path)} aria-current={here ? "page" : undefined}>
      {place.title}
      {place.path === "/inbox" && <InboxCount />}
    </a>
  );
}

function InboxCount() {
  const count = waitingCount.value;
  return count ? <span class="count" aria-label={`${count} waiting`}>{count > 99 ? "99+" : count}</span> : null;
}

function AccountItems() {
  return (
    <>
      <p class="menu-note">{caller.value?.name} · {caller.value?.role}</p>
      {DESTINATIONS.filter((place) => place.role === "admin" && may("admin")).map((place) => <a class="menu-item" href={href(place.path)} key={place.path}>{place.title}</a>)}
      <button type="button" class="menu-item" onClick={openHelp}>Keyboard help</button>
      {caller.value?.session && <button type="button" class="menu-item" onClick={() => void signOut()}>Sign out</button>}
      <p class="menu-note">NoETL {caller.value?.release}</p>
    </>
  );
}

function ThemeMenu() {
  const names: [Theme, string][] = [["system", "As the system"], ["light", "Light"], ["dark", "Dark"]];
  const icon = theme.value === "light" ? "sun" : theme.value === "dark" ? "moon" : "contrast";
  return (
    <Menu label="Theme" class="tool" button={<Icon name={icon} />}>
      {(close) =>
        names.map(([value, text]) => (
          <button type="button" class="menu-item" key={value} aria-pressed={theme.value === value} onClick={() => { theme.value = value; close(); }}>
            <Icon name={value === "light" ? "sun" : value === "dark" ? "moon" : "contrast"} />{text}
            {theme.value === value && <span class="push"><Icon name="check" /></span>}
          </button>
        ))
      }
    </Menu>
  );
}

/** Names of today that browsers know but list under older ones. */
const RENAMED = ["Europe/Kyiv", "Asia/Kolkata", "Asia/Kathmandu", "Asia/Yangon", "Asia/Ho_Chi_Minh", "America/Nuuk"];

function ZoneDialog({ close }: { close: () => void }) {
  const [filter, setFilter] = useState("");
  const [shown, setShown] = useState<string[]>([]);
  useEffect(() => {
    const server = caller.value?.zone ?? "UTC";
    const all = [...new Set([browserZone, "UTC", server, ...RENAMED, ...Intl.supportedValuesOf("timeZone")])];
    const wanted = filter.trim().toLowerCase().replaceAll(" ", "_");
    setShown(all.filter((name) => name.toLowerCase().includes(wanted)).slice(0, 40));
  }, [filter]);
  const note = (name: string) => (name === browserZone ? "this browser" : name === caller.value?.zone ? "the server" : "");
  return (
    <Dialog title="Time zone" close={close}>
      <input class="input" type="search" placeholder="Search, for example Kyiv" aria-label="Search a time zone" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
      <div>
        {shown.map((name) => (
          <button type="button" class="menu-item" key={name} aria-pressed={zone.value === name} onClick={() => { zone.value = name; close(); }}>
            <span>{name}</span><span class="muted small">{note(name)}</span>
            <span class="push muted numbers">{partsOf(Date.now(), name).offset}</span>
            {zone.value === name && <Icon name="check" />}
          </button>
        ))}
        {!shown.length && <p class="menu-note">No zone has this in its name.</p>}
      </div>
    </Dialog>
  );
}

export function Logo() {
  return (
    <svg width="24" height="24" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" fill="#2457c5" />
      <circle cx="9.5" cy="16" r="3.6" fill="none" stroke="#fff" stroke-width="2.4" />
      <path d="M13.5 16h5" stroke="#fff" stroke-width="2.4" />
      <rect x="19" y="9" width="4" height="14" rx="1.2" fill="#fff" />
    </svg>
  );
}
