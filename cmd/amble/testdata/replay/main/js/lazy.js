for (const i of document.querySelectorAll(".lazy")) {
  new IntersectionObserver((seen, o) => {
    for (const s of seen.filter((s) => s.isIntersecting)) {
      const d = s.target.dataset;
      if (d.srcset) { s.target.srcset = d.srcset; } else { s.target.src = d.src || d.original; }
      o.disconnect();
    }
  }).observe(i);
}
