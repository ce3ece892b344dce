import { PageHead } from "../view/parts";

export default function Home() {
  return <main id="main"><PageHead title="Home" /></main>;
}
