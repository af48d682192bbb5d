import { paint } from "./part.js";
paint("#c0e0c0");
