"""`ixion pipeline`: runs, shows and mends pipelines of `ixion.pipelines`."""
