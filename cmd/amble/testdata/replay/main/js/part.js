export function paint(color) { document.body.style.background = color; }
