import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { asProblem } from "../api/client";
import type { ProblemDocument } from "../api/types";
import { Problem } from "./parts";

/** A component that is loaded when it is first shown: what nobody sees at first sight costs nobody bytes. */
export function late<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  let Loaded: ComponentType<P> | undefined;
  return function Late(props: P) {
    const [, setLoaded] = useState(false);
    const [problem, setProblem] = useState<ProblemDocument>();
    useEffect(() => {
      if (Loaded) return;
      load().then(
        (component) => {
          Loaded = component;
          setLoaded(true);
        },
        (error: unknown) => setProblem(asProblem(error)),
      );
    }, []);
    if (problem) return <Problem problem={{ ...problem, hint: "The server may have a new release: load the page again." }} retry={() => location.reload()} />;
    return Loaded ? <Loaded {...props} /> : <p class="loading" role="status">Loading…</p>;
  };
}
