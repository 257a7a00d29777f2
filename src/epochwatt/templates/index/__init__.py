"""Templates, style and script of the landing page; a rule that imports this follows their text."""

PAGE = "index/page.html"
